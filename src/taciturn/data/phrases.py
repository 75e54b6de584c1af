"""What the two sides of CustomerSim say, by dialogue act. ``{slot}`` is a secret; ``{item}`` and ``{when}`` are not."""

from __future__ import annotations

ITEMS = (
    "armchair", "backpack", "blender", "bookshelf", "camera", "carpet", "desk", "dress", "guitar", "headset", "heater",
    "jacket", "kettle", "keyboard", "mattress", "mirror", "printer", "scarf", "sofa", "speaker", "suitcase", "sweater",
    "tent", "toaster",
)  # fmt: skip
WHEN = ("last week", "two weeks ago", "a few days ago", "yesterday", "ten days ago", "earlier this month")

GREET = (
    "Welcome to customer care. How may I assist you?",
    "Good day, this is the support desk. What brings you here?",
    "Thank you for contacting us. What is it about?",
    "Hi there, you are talking to the order assistant.",
    "Hello and welcome. Which order can I look up?",
    "You have reached the delivery team. What would you like to know?",
)
HELLO = ("Hello!", "Hey.", "Good morning.", "Hi there.", "Good evening.", "Hi,", "Hello,")
REQUEST = (
    "I bought a {item} {when} and it has not arrived.",
    "I would like to find out where my {item} is.",
    "my {item} was due {when}, can you check on it?",
    "could you tell me the status of my {item}?",
    "I paid for a {item} {when} and heard nothing since.",
    "has the {item} I ordered {when} left the warehouse?",
    "I cannot find any tracking details for my {item}.",
    "when will the {item} that I ordered {when} be delivered?",
    "I lost the tracking link for a {item} I got {when}.",
    "there is no news about my parcel, it is a {item}.",
)
ASK = {
    "name": (
        "Happy to check. What name is the order under?",
        "Let me look. Can I get your first and last name?",
        "Of course. Who am I speaking with, please?",
        "I can do that. Your full name, please?",
        "To begin, tell me the name on your account.",
        "No problem. Which name did you use for the purchase?",
    ),
    "order_number": (
        "Thanks. What is the number of your order?",
        "And the order number from your receipt, please?",
        "I also need the number of the order.",
        "Next, please read me the order number in the mail.",
        "Would you have the order number at hand?",
    ),
    "phone_number": (
        "Thanks. Which phone number is on the account?",
        "And a telephone number to confirm it is you?",
        "I need the phone number you signed up with.",
        "What number did you leave for the courier to call?",
        "Please tell me your phone number as well.",
    ),
    "address": (
        "Thanks. Where should the parcel be delivered?",
        "And what address did you give for delivery?",
        "Please confirm the address it was sent to.",
        "I also need the delivery address on the order.",
        "Which address is the parcel going to?",
    ),
}
INFORM = {
    "name": (
        "{name}",
        "{name}.",
        "This is {name}.",
        "The name is {name}.",
        "It should be under {name}.",
        "You will find it under {name}.",
        "{name}, that is me.",
        "Of course, I am {name}.",
        "I'm {name}, nice to meet you.",
    ),
    "order_number": (
        "{order_number}",
        "{order_number}.",
        "The order number is {order_number}.",
        "Here it is: {order_number}.",
        "One second. {order_number}, I think.",
        "My receipt says {order_number}.",
        "That would be {order_number}.",
    ),
    "phone_number": (
        "{phone_number}",
        "{phone_number}.",
        "You can call me on {phone_number}.",
        "My phone is {phone_number}.",
        "It should be {phone_number}.",
        "The best number is {phone_number}.",
        "I signed up with {phone_number}.",
    ),
    "address": (
        "{address}",
        "{address}.",
        "I live at {address}.",
        "Please send it to {address}.",
        "It goes to {address}.",
        "The address should be {address}.",
        "My home, {address}.",
    ),
    "tracking_number": (
        "I found it, the tracking number is {tracking_number}.",
        "It is on its way, follow it with {tracking_number}.",
        "It has left us. Enter {tracking_number} to track it.",
        "It was shipped. The code to track it is {tracking_number}.",
        "Here is your tracking number: {tracking_number}.",
        "Thank you. The courier lists it as {tracking_number}.",
    ),
}
MORE = (
    "Does that answer your question?",
    "Is there more I can do?",
    "Can I help with something else?",
    "Do you have another question?",
    "Would you like anything more?",
)
DONE = (
    "No, that was everything.",
    "Great, that helps.",
    "Perfect, nothing else.",
    "Wonderful, just what I needed.",
    "No, I am fine now.",
    "That answers it.",
)
THANKS = ("", "", "Thanks a lot.", "Many thanks!", "Have a good day.", "I appreciate the help.", "Bye now.")
BYE = (
    "Glad to help, goodbye!",
    "Thanks for shopping with us.",
    "Enjoy your order, bye.",
    "You are welcome. Take care!",
    "Have a pleasant day.",
)
