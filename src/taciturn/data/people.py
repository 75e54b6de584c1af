"""Invented customers: names, addresses, telephone, order and tracking numbers, drawn from lists of our own."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from string import ascii_uppercase, digits


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SHARES = {"train": range(10), "valid": range(10, 11), "test": range(11, 12)}
"""Which of twelve classes of people each split draws from: no full name is in two splits, whatever the seed."""
CLASSES = 12

FIRST = _words("""
Aaron Abigail Adam Adele Agnes Alan Albert Alice Alma Amanda Amy Andre Andrea Angela Anita Ann Anthony Antonio Arthur
Audrey Barbara Beatrice Bella Benjamin Bernard Beth Boris Brenda Brian Bridget Bruce Caleb Camille Carla Carlos Carmen
Caroline Cecil Celia Charles Chloe Chris Clara Claudia Colin Connie Craig Curtis Cynthia Daisy Daniel Daphne David Dawn
Deborah Dennis Diana Diego Dominic Donald Dora Doris Dustin Earl Edgar Edith Eduardo Eleanor Elena Elias Elsa Emil Emma
Eric Esther Ethan Eugene Eva Faye Felix Fiona Flora Florence Frances Frank Fred Gabriel Gail Gemma George Gerald Gina
Glenn Gloria Grace Gregory Guy Hannah Harold Harriet Hazel Heather Hector Helen Henry Herbert Hilda Hugo Ian Ida Igor
Ines Irene Iris Isaac Ivan Ivy Jack Jacob James Janet Jason Jean Jeremy Jerome Joan Joel Jonas Joseph Joyce Juan Judith
Julia Julian Karen Karl Kate Keith Kelly Kenneth Kevin Kim Kurt Laura Lawrence Leah Leo Leon Lewis Linda Lionel Lisa
Lloyd Lois Lorena Louis Lucas Lucy Luis Lydia Mabel Malcolm Marco Margaret Maria Marion Martha Martin Maurice Max Megan
Michael Mildred Miles Miriam Molly Monica Morgan Nadia Nancy Naomi Nathan Neil Nicholas Nina Noah Nora Norman Olga
Oliver Olivia Oscar Owen Pamela Patrick Paul Paula Pearl Pedro Penny Peter Philip Phyllis Quentin Rachel Ralph Raymond
Rebecca Rene Rita Robert Roger Rosa Roy Ruben Ruth Samuel Sandra Sara Scott Sharon Sheila Sidney Simon Sofia Stella
Stephen Susan Sylvia Tamara Teresa Theo Thomas Tina Toby Tracy Trevor Ursula Valerie Vera Vernon Victor Vincent Viola
Walter Wanda Warren Wendy Wesley William Winston Yolanda Yvette Zachary Zoe
""")

LAST = _words("""
Abbott Acosta Adler Aguilar Albright Alvarado Ames Anders Archer Arroyo Ashby Atkins Avery Baker Baldwin Banks Barlow
Barrera Bauer Beck Bell Beltran Bennett Berg Bishop Blair Blake Bolton Bond Booth Bowen Boyle Brandt Bravo Briggs Brock
Buchanan Burke Burton Byrne Cabrera Cain Calhoun Cannon Cardenas Carey Carlson Carver Castillo Chambers Chandler Chang
Chase Choi Church Clarke Cobb Cohen Colby Conrad Contreras Cooke Cordova Correa Costa Crane Cross Cruz Curry Dalton
Daly Daniels Davila Dawson Decker Delaney Delgado Dixon Dolan Dorsey Doyle Drake Dudley Duffy Duncan Dunn Durham Easton
Eaton Ellis Emery Erickson Escobar Espinoza Everett Farley Farrell Faulkner Ferrara Fields Figueroa Finch Fischer Fisher
Fitch Fleming Flores Flynn Foley Forbes Foster Fowler Frazier Fritz Frost Fuentes Gaines Gallo Galvan Garner Garza
Gentry Gibbs Giles Glover Goodman Gould Grady Graves Greer Griffin Guerra Haas Hale Hammond Hansen Harding Harlow
Hartman Hayden Heath Hendrix Herrera Hess Hobbs Hodge Hoffman Holden Holt Hooper Horne Houston Howe Huber Huerta Hull
Hurley Ibarra Ingram Irwin Jarvis Jennings Jensen Juarez Kane Kaplan Keller Kemp Kerr Kirby Klein Knapp Knox Kramer
Krause Lamb Landry Lang Larsen Lawson Leach Lehman Leon Levy Lindsey Logan Lombardi Lowe Lozano Lucero Lynn Macias Mack
Madden Maldonado Mann Marks Marquez Massey Mathis Maxwell Maynard Mccall Mcgee Mckay Medina Mejia Melendez Mercado
Merritt Meyers Miles Moody Mora Morrow Moss Mueller Munoz Nash Navarro Newton Nielsen Nixon Noble Nolan Norris Nunez
Oakley Ochoa Odom Olsen Orozco Osborn Otero Pace Padilla Park Parrish Patel Patton Payne Pena Perkins Peters Phelps
Pierce Pitts Ponce Poole Porter Potter Pratt Preston Quinn Ramsey Randall Rangel Reese Reilly Rhodes Richter Riggs Rios
Rivas Robbins Rocha Roman Rosales Rossi Rowe Rubio Rush Salas Salinas Sampson Santana Sawyer Schmitt Schultz Serrano
Shaffer Shah Sharp Shepherd Short Sierra Silva Sims Skinner Slater Sloan Snow Solis Sosa Sparks Stafford Stanton Steele
Stein Stokes Strong Suarez Sutton Tanner Tate Terrell Thornton Tran Trevino Tucker Underwood Valdez Vance Vargas Vaughn
Vega Velasco Villa Vogel Wade Wagner Walsh Walton Ware Watts Weaver Webb Weeks Weiss Welch Whitaker Wilder Wiley Winters
Wolfe Woodard Wu Wyatt Xiong Yates Yoder York Zamora Zhang Zimmerman
""")

STREETS = _words("""
Acorn Alder Amber Aspen Bayberry Beacon Birch Bridge Brook Canal Cedar Chapel Cherry Chestnut Clover Cypress Dogwood
Elm Falcon Fern Forest Garden Glen Grove Harbor Hawthorn Heron Hickory Hill Juniper Lake Larch Laurel Lilac Linden Magnolia
Maple Meadow Mill Mulberry Myrtle Oak Orchard Park Pine Poplar Prairie Quarry Quail River Rosewood Sage Spruce Station
Summit Sycamore Thistle Valley Walnut Willow Woodland
""")
WAYS = _words(
    "Avenue Boulevard Circle Court Crossing Drive Lane Loop Parkway Place Road Square Street Terrace Trail Way"
)
TOWN_HEADS = _words("""
Alden Ash Barton Bel Brant Bright Carl Clay Cold Dan East Fair Far Glen Green Hart Haver High King Lake Lin Mar Mill New
North Oak Os Pem Ray Red Rock Sand Shel Silver South Spring Stan Stone Sun Thorn Wal War West White Win Wood
""")
TOWN_TAILS = _words("""
borough bridge brook burg bury dale field ford ham haven hurst land ley mont
mouth port side ton view ville wood
""")
TOWN_WORDS = ("North ", "South ", "East ", "West ", "Port ", "Lake ", "New ", "Fort ")
STATES = _words("""
AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC
SD TN TX UT VT VA WA WV WI WY
""")
PHONES = (
    "{}.{}.{}",
    "{}.{}.{}",
    "{}{}{}",
    "{}{}{}",
    "{}-{}-{}",
    "{}-{}-{}",
    "({}) {}-{}",
    "001-{}-{}-{}",
    "+1 {} {} {}",
)


@dataclass(frozen=True, slots=True)
class Customer:
    """One order of one invented person; every field is a secret of the corpus."""

    name: str
    address: str
    phone_number: str
    order_number: str
    tracking_number: str


def customer(rng: Random, split: str) -> Customer:
    """A customer of a split ("train", "valid", "test"); the number of distinct names is ``len(FIRST) * len(LAST)``."""
    first = rng.randrange(len(FIRST))
    wanted = rng.choice(SHARES[split])
    last = rng.randrange((wanted - first) % CLASSES, len(LAST), CLASSES)
    return Customer(
        name=f"{FIRST[first]} {LAST[last]}",
        address=_address(rng),
        phone_number=rng.choice(PHONES).format(
            f"{rng.randrange(200, 990)}", f"{rng.randrange(200, 1000)}", f"{rng.randrange(10000):04}"
        ),
        order_number=f"{rng.randrange(100, 1000)}-{rng.randrange(10000, 100000)}-{rng.randrange(1000, 10000)}",
        tracking_number="".join(rng.choices(ascii_uppercase + digits, k=10)),
    )


def _address(rng: Random) -> str:
    if rng.random() < 0.05:
        return f"PO Box {rng.randrange(10, 10000)} {_town(rng)}, {rng.choice(STATES)} {rng.randrange(1000, 99999):05}"
    number = rng.randrange(1, 10 ** rng.randrange(2, 6))
    inner = rng.choice(("", "", f" Apt. {rng.randrange(1, 1000):03}", f" Suite {rng.randrange(1, 1000)}"))
    street = f"{rng.choice(STREETS)} {rng.choice(WAYS)}"
    return f"{number} {street}{inner} {_town(rng)}, {rng.choice(STATES)} {rng.randrange(1000, 99999):05}"


def _town(rng: Random) -> str:
    word = rng.choice(TOWN_WORDS) if rng.random() < 0.4 else ""
    return word + rng.choice(TOWN_HEADS) + rng.choice(TOWN_TAILS)
