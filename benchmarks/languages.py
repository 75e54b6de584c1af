"""The table of docs/detectors.md on languages: made-up letters with made-up people, under π_c in their language.

    python benchmarks/languages.py                    the half that nothing was made on: about two minutes on one core
    python benchmarks/languages.py --half looked-at   the half that capitals of German were decided on

No annotated text of French, German, Polish, Italian, Dutch, Portuguese or Swedish was at hand, so this is a stand-in:
sentences written for it, filled by Faker (names, streets, towns, firms, telephone numbers of the country). Templates and random
numbers of the halves are different. It says little of how people really write; labels of your own text do (docs/how-to/recall.md).
"""

# ruff: noqa: E501  sentences are read as such
from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from faker import Faker

from taciturn.cli.measured import build
from taciturn.project.speaking import marked
from taciturn.screening.corpus.gold import together
from taciturn.screening.measuring.evaluate import evaluate
from taciturn.screening.measuring.preview import of_corpus
from taciturn.screening.policies import Policy
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span

COPIES = 60
HALVES = ("looked-at", "held-out")


@dataclass(frozen=True, slots=True)
class Language:
    """code, Faker's locale, the packs that π adds to ``pii``, and templates of each half."""

    code: str
    locale: str
    packs: tuple[str, ...]
    templates: tuple[tuple[str, ...], tuple[str, ...]]


LANGUAGES = (
    Language("en", "en_US", ("us",), ((
        "My name is {name} and I moved to {town} last year. Please send the contract to {street}. You can call me on {phone}.",
        "Dear Sir or Madam, {name} was born on {born} and has been a customer of yours since then. Could you check the account?",
        "{first} told me that the doctor had prescribed another medicine. The bill of {firm} has not been paid yet.",
        "We met {name} at the station yesterday. Her number is {phone}, but she seldom answers it.",
        "The meeting with {firm} begins at nine. Afterwards {first} and I will write the report.",
    ), (
        "This letter is about the insurance of {name}, {street}, {town}. The damage was reported in time. We need a new photograph.",
        "Yesterday I spoke to {name} from {firm}; she promised to call back. Nothing has happened since.",
        "Patient {name}, date of birth {born}, complains of headaches. He sleeps badly and works at night.",
        "Hello {first}, thank you for the message. The key is with the neighbour, {last}, on the second floor.",
        "The flat in {street} belongs to {name}. The rent is to be paid by the third of each month. Call {phone} with questions.",
    ))),
    Language("de", "de_DE", ("de",), ((
        "Mein Name ist {name} und ich bin letztes Jahr nach {town} gezogen. Bitte schicken Sie den Vertrag an {street}. Sie erreichen mich unter {phone}.",
        "Sehr geehrte Damen und Herren, {name} wurde am {born} geboren und ist seitdem Ihr Kunde. Könnten Sie das Konto prüfen?",
        "{first} sagte mir, dass der Arzt ein anderes Medikament verschrieben hat. Die Rechnung von {firm} ist noch nicht bezahlt.",
        "Wir haben {name} gestern am Bahnhof getroffen. Ihre Nummer ist {phone}, aber sie geht selten ans Telefon.",
        "Die Besprechung mit {firm} beginnt um neun Uhr. Danach schreiben {first} und ich den Bericht für die Leitung.",
    ), (
        "In diesem Schreiben geht es um die Versicherung von {name}, {street}, {town}. Der Schaden wurde rechtzeitig gemeldet. Wir brauchen ein neues Foto.",
        "Gestern habe ich mit {name} von {firm} gesprochen, die einen Rückruf versprochen hat. Seitdem ist nichts geschehen.",
        "Patient {name}, geboren am {born}, klagt über Kopfschmerzen. Er schläft schlecht und arbeitet in der Nacht.",
        "Hallo {first}, vielen Dank für die Nachricht. Der Schlüssel liegt beim Nachbarn {last} im zweiten Stock.",
        "Die Wohnung in der {street} gehört {name}. Die Miete ist bis zum dritten Tag des Monats zu zahlen. Bei Fragen {phone} anrufen.",
    ))),
    Language("fr", "fr_FR", ("fr",), ((
        "Je m'appelle {name} et j'ai déménagé à {town} l'année dernière. Merci d'envoyer le contrat au {street}. Vous pouvez me joindre au {phone}.",
        "Madame, Monsieur, {name} est né le {born} et il est votre client depuis. Pourriez-vous vérifier le compte ?",
        "{first} m'a dit que le médecin avait prescrit un autre médicament. La facture de {firm} n'est pas encore payée.",
        "Nous avons rencontré {name} hier à la gare. Son numéro est le {phone}, mais elle répond rarement.",
        "La réunion avec {firm} commence à neuf heures. Ensuite, {first} et moi écrirons le rapport.",
    ), (
        "Cette lettre concerne l'assurance de {name}, {street}, {town}. Le dommage a été déclaré à temps. Il nous faut une nouvelle photo.",
        "Hier j'ai parlé avec {name} de {firm}, qui a promis de rappeler. Rien ne s'est passé depuis.",
        "Patient {name}, né le {born}, se plaint de maux de tête. Il dort mal et travaille la nuit.",
        "Bonjour {first}, merci pour le message. La clé est chez le voisin, {last}, au deuxième étage.",
        "L'appartement du {street} appartient à {name}. Le loyer est à payer avant le trois du mois. Appelez le {phone} pour toute question.",
    ))),
    Language("pl", "pl_PL", ("pl",), ((
        "Nazywam się {name} i w zeszłym roku zamieszkałem w {town}. Proszę wysłać umowę na adres {street}. Można do mnie zadzwonić: {phone}.",
        "Szanowni Państwo, {name} urodził się {born} i od tego czasu jest Państwa klientem. Czy można sprawdzić konto?",
        "{first} mówi, że lekarz przepisał inny lek. Faktura firmy {firm} nie została jeszcze zapłacona.",
        "Wczoraj na dworcu była {name}. Jej numer to {phone}, ale rzadko odbiera.",
        "Spotkanie z firmą {firm} zaczyna się o dziewiątej. Potem {first} i ja napiszemy sprawozdanie.",
    ), (
        "Pismo dotyczy ubezpieczenia: {name}, {street}, {town}. Szkoda została zgłoszona w terminie. Potrzebujemy nowego zdjęcia.",
        "Wczoraj dzwoniła {name} z firmy {firm} i obiecała, że oddzwoni. Od tego czasu nic się nie stało.",
        "Pacjent {name}, data urodzenia {born}, skarży się na ból głowy. Źle śpi i pracuje w nocy.",
        "Cześć {first}, dziękuję za wiadomość. Klucz ma sąsiad, {last}, na drugim piętrze.",
        "Mieszkanie przy {street} należy do osoby: {name}. Czynsz trzeba zapłacić do trzeciego dnia miesiąca. Pytania pod numerem {phone}.",
    ))),
    Language("es", "es_ES", ("es",), ((
        "Me llamo {name} y el año pasado me mudé a {town}. Envíe el contrato a {street}, por favor. Puede llamarme al {phone}.",
        "Estimados señores, {name} nació el {born} y es cliente suyo desde entonces. ¿Podrían revisar la cuenta?",
        "{first} me dijo que el médico le recetó otra medicina. La factura de {firm} no está pagada todavía.",
        "Ayer encontramos a {name} en la estación. Su número es {phone}, pero casi nunca contesta.",
        "La reunión con {firm} empieza a las nueve. Después {first} y yo escribiremos el informe.",
    ), (
        "Esta carta trata del seguro de {name}, {street}, {town}. El daño se comunicó a tiempo. Necesitamos una foto nueva.",
        "Ayer hablé con {name} de {firm}, que prometió volver a llamar. Desde entonces no ha pasado nada.",
        "Paciente {name}, fecha de nacimiento {born}, se queja de dolor de cabeza. Duerme mal y trabaja de noche.",
        "Hola {first}, gracias por el mensaje. La llave la tiene el vecino, {last}, en el segundo piso.",
        "El piso de {street} es de {name}. El alquiler se paga antes del tres de cada mes. Llame al {phone} si tiene preguntas.",
    ))),
    Language("it", "it_IT", ("it",), ((
        "Mi chiamo {name} e l'anno scorso mi sono trasferito a {town}. Mandi il contratto in {street}, per favore. Può chiamarmi al {phone}.",
        "Gentili signori, {name} è nato il {born} ed è vostro cliente da allora. Potreste controllare il conto?",
        "{first} mi ha detto che il medico ha prescritto un'altra medicina. La fattura di {firm} non è ancora pagata.",
        "Ieri abbiamo incontrato {name} alla stazione. Il suo numero è {phone}, ma risponde di rado.",
        "La riunione con {firm} comincia alle nove. Dopo {first} e io scriveremo la relazione.",
    ), (
        "Questa lettera riguarda l'assicurazione di {name}, {street}, {town}. Il danno è stato denunciato in tempo. Ci serve una nuova foto.",
        "Ieri ho parlato con {name} di {firm}, che ha promesso di richiamare. Da allora non è successo niente.",
        "Paziente {name}, data di nascita {born}, soffre di mal di testa. Dorme male e lavora di notte.",
        "Ciao {first}, grazie per il messaggio. La chiave è dal vicino, {last}, al secondo piano.",
        "L'appartamento in {street} appartiene a {name}. L'affitto si paga entro il tre del mese. Per domande chiamare {phone}.",
    ))),
    Language("nl", "nl_NL", ("nl",), ((
        "Mijn naam is {name} en ik ben vorig jaar naar {town} verhuisd. Stuur het contract naar {street}. U kunt mij bellen op {phone}.",
        "Geachte heer of mevrouw, {name} is geboren op {born} en is sindsdien klant bij u. Kunt u de rekening nakijken?",
        "{first} zei dat de dokter een ander medicijn had voorgeschreven. De rekening van {firm} is nog niet betaald.",
        "Gisteren hebben we {name} op het station gezien. Haar nummer is {phone}, maar ze neemt zelden op.",
        "De vergadering met {firm} begint om negen uur. Daarna schrijven {first} en ik het verslag.",
    ), (
        "Deze brief gaat over de verzekering van {name}, {street}, {town}. De schade is op tijd gemeld. We hebben een nieuwe foto nodig.",
        "Gisteren sprak ik met {name} van {firm}, die beloofde terug te bellen. Sindsdien is er niets gebeurd.",
        "Patiënt {name}, geboortedatum {born}, heeft last van hoofdpijn. Hij slaapt slecht en werkt in de nacht.",
        "Hallo {first}, bedankt voor het bericht. De sleutel ligt bij de buurman, {last}, op de tweede verdieping.",
        "Het huis aan de {street} is van {name}. De huur moet voor de derde van de maand betaald zijn. Bel {phone} bij vragen.",
    ))),
    Language("pt", "pt_PT", ("pt",), ((
        "Chamo-me {name} e no ano passado mudei para {town}. Envie o contrato para {street}, por favor. Pode ligar para {phone}.",
        "Exmos. senhores, {name} nasceu em {born} e é vosso cliente desde então. Podem verificar a conta?",
        "{first} disse que o médico receitou outro medicamento. A fatura de {firm} ainda não foi paga.",
        "Ontem encontrámos {name} na estação. O número é {phone}, mas raramente atende.",
        "A reunião com {firm} começa às nove. Depois {first} e eu escrevemos o relatório.",
    ), (
        "Esta carta é sobre o seguro de {name}, {street}, {town}. O dano foi comunicado a tempo. Precisamos de uma fotografia nova.",
        "Ontem falei com {name} da {firm}, que prometeu voltar a ligar. Desde então não aconteceu nada.",
        "Paciente {name}, data de nascimento {born}, queixa-se de dores de cabeça. Dorme mal e trabalha de noite.",
        "Olá {first}, obrigado pela mensagem. A chave está com o vizinho, {last}, no segundo andar.",
        "O apartamento em {street} é de {name}. A renda paga-se até ao dia três do mês. Ligue para {phone} se tiver perguntas.",
    ))),
    Language("sv", "sv_SE", ("se",), ((
        "Jag heter {name} och flyttade till {town} förra året. Skicka avtalet till {street}. Du kan ringa mig på {phone}.",
        "Hej, {name} är född {born} och har varit er kund sedan dess. Kan ni kontrollera kontot?",
        "{first} sade att läkaren hade skrivit ut en annan medicin. Räkningen från {firm} är inte betald än.",
        "Igår träffade vi {name} på stationen. Hennes nummer är {phone}, men hon svarar sällan.",
        "Mötet med {firm} börjar klockan nio. Sedan skriver {first} och jag rapporten.",
    ), (
        "Det här brevet gäller försäkringen för {name}, {street}, {town}. Skadan anmäldes i tid. Vi behöver en ny bild.",
        "Igår talade jag med {name} från {firm}, som lovade att ringa tillbaka. Sedan dess har ingenting hänt.",
        "Patienten {name}, födelsedatum {born}, har ont i huvudet. Han sover dåligt och arbetar på natten.",
        "Hej {first}, tack för meddelandet. Nyckeln finns hos grannen, {last}, på andra våningen.",
        "Lägenheten på {street} tillhör {name}. Hyran ska betalas före den tredje varje månad. Ring {phone} om du har frågor.",
    ))),
)  # fmt: skip
_FIELD = re.compile(r"\{(\w+)\}")


def documents(language: Language, half: str) -> Iterator[Document]:
    """Each template of a half so many times, every field of it gold."""
    fake = Faker(language.locale)
    fake.seed_instance(f"{language.code} {half}")
    coins = random.Random(half)
    makers = {
        "name": lambda: f"{fake.first_name()} {fake.last_name()}",
        "first": fake.first_name,
        "last": fake.last_name,
        "town": fake.city,
        "street": fake.street_address,
        "firm": fake.company,
        "phone": fake.phone_number,
        "born": lambda: fake.date_of_birth().strftime(coins.choice(("%d.%m.%Y", "%d/%m/%Y", "%Y-%m-%d"))),
    }
    for number, template in enumerate(language.templates[HALVES.index(half)] * COPIES):
        text, spans, at = "", [], 0
        for field in _FIELD.finditer(template):
            text += template[at : field.start()]
            value = makers[field[1]]().replace("\n", ", ")
            spans.append(Span(len(text), len(text) + len(value), field[1]))
            text, at = text + value, field.end()
        yield Document(f"{language.code}:{number}", text + template[at:], None, (), tuple(spans))


def row(language: Language, half: str, level: str) -> str:
    """A line of the table."""
    corpus = Corpus.from_documents(documents(language, half))
    records = list(of_corpus(corpus, "sentence"))
    at = "" if language.code == "en" else f"@{language.code}"
    pi, wide = build(",".join(("pii", *language.packs))), build(f"{level}{at}")
    (score,) = evaluate(records, [pi], wide)
    both = together(score.gold_by_label)
    public = sum(
        not a.spans and not b.spans and bool(r.gold)
        for r, a, b in zip(records, _found(pi, records), _found(wide, records), strict=True)
    )
    share = marked(wide, [record.text for record in records])
    return (
        f"| `{level}{at}` | {score.records_gold:,} | {100 * public / score.records_gold:.1f} % "
        f"| {100 * both.with_skeletons / both.spans:.1f} % | {100 * share:.0f} % |"
    )


def _found(policy: Policy, records: Sequence[Any]) -> list[Any]:
    return list(policy.find([record.text for record in records]))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--half", choices=HALVES, default="held-out")
    parser.add_argument("--levels", default="conservative,conservative:strict")
    parser.add_argument("--languages", default=",".join(language.code for language in LANGUAGES))
    options = parser.parse_args(argv)
    print("| π_c | records with gold | of these public | secrets missed with skeletons | words marked |")
    print("|---|---:|---:|---:|---:|")
    for language in LANGUAGES:
        if language.code in options.languages.split(","):
            for level in options.levels.split(","):
                print(row(language, options.half, level), flush=True)


if __name__ == "__main__":
    main()
