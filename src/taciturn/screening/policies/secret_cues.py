"""Words beside which a secret is likely to stand, by language: what ``conservative:strict`` keeps whole records for.

Names, addresses, births, passwords, accounts and papers as people speak of them. Words that mean something else more often
stay out ("compte", "cuenta"), or stand with what makes them one ("mon compte"). So do, but in English, words of addresses
("rue", "señora"): a cue inside a secret is masked with it, which frees the rest of its record, and its skeleton tells.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_CUES = {
    "en": "name, names, named, call me, calls me, called me, address, street, streets, road, roads, lane, avenue, "
    "drive, boulevard, square, terrace, parade, crescent, password, passcode, pin, username, user id, login, "
    "born, birth, birthday, live at, live in, live on, lives at, lives in, lives on, living at, living in, living "
    "on, reside, account, mobile, ssn, social security, passport, license, licence, zip, postcode, post code, "
    "reference, mr, mrs, ms, miss, dr",
    "de": "name, namens, namen, vorname, vornamen, nachname, nachnamen, familienname, geburtsname, heiße, heißt, "
    "heißen, adresse, anschrift, hausnummer, postleitzahl, plz, wohne, wohnt, wohnen, wohnhaft, wohnort, "
    "wohnsitz, passwort, kennwort, password, pin, benutzername, nutzername, login, zugangsdaten, geboren, geburt, "
    "geburtsdatum, geburtstag, geburtsort, konto, kontonummer, bankverbindung, iban, handy, handynummer, mobil, "
    "mobilnummer, telefon, telefonnummer, rufnummer, reisepass, personalausweis, ausweisnummer, führerschein, "
    "steuernummer, steuer-id, versicherungsnummer, sozialversicherungsnummer, versichertennummer, kundennummer, "
    "vertragsnummer, aktenzeichen, herr, herrn, frau",
    "fr": "nom, noms, prénom, prénoms, surnom, m'appelle, t'appelles, s'appelle, appelez-moi, adresse, code postal, "
    "habite, habites, habitons, habitent, demeurant, domicilié, domiciliée, domicile, mot de passe, identifiant, "
    "password, pin, login, né, née, nés, naissance, anniversaire, mon compte, son compte, votre compte, numéro de "
    "compte, compte bancaire, rib, iban, portable, téléphone, tél, passeport, permis de conduire, carte "
    "d'identité, carte vitale, sécurité sociale, numéro de dossier, référence, monsieur, madame, mademoiselle, "
    "mme",
    "es": "nombre, nombres, apellido, apellidos, me llamo, te llamas, se llama, dirección, domicilio, código postal, "
    "vivo, vive, viven, vivimos, resido, reside, residente, contraseña, clave, password, pin, usuario, nacido, "
    "nacida, nací, nació, nacimiento, cumpleaños, mi cuenta, su cuenta, número de cuenta, cuenta bancaria, iban, "
    "móvil, celular, teléfono, tlf, pasaporte, dni, nie, nif, carné de conducir, permiso de conducir, seguridad "
    "social, expediente, referencia, sr, sra, don, doña, dra",
    "it": "nome, nomi, cognome, cognomi, mi chiamo, ti chiami, si chiama, indirizzo, cap, codice postale, codice "
    "fiscale, abito, abita, abitano, residente, residenza, domicilio, password, parola d'ordine, pin, nome "
    "utente, login, nato, nata, nascita, compleanno, mio conto, suo conto, numero di conto, conto corrente, iban, "
    "cellulare, telefono, tel, passaporto, patente, carta d'identità, tessera sanitaria, numero di pratica, "
    "riferimento, signor, signora, sig, dottor, dottoressa, dott",
    "nl": "naam, namen, voornaam, achternaam, familienaam, heet, heten, adres, huisnummer, postcode, woon, woont, "
    "wonen, woonachtig, woonplaats, wachtwoord, pincode, password, pin, gebruikersnaam, login, geboren, geboorte, "
    "geboortedatum, geboorteplaats, verjaardag, rekeningnummer, bankrekening, iban, mobiel, mobiele, telefoon, "
    "telefoonnummer, paspoort, rijbewijs, identiteitskaart, bsn, burgerservicenummer, klantnummer, dossiernummer, "
    "referentie, heer, mevrouw, mevr, mw, dhr",
    "pl": "imię, imienia, imiona, nazwisko, nazwiska, nazywam, nazywasz, nazywa, adres, adresu, adresem, kod pocztowy, "
    "mieszkam, mieszka, mieszkają, zamieszkały, zamieszkała, zameldowany, zameldowana, hasło, hasła, password, "
    "pin, login, nazwa użytkownika, urodzony, urodzona, urodził, urodziła, urodziłem, urodziłam, urodzenia, "
    "urodziny, konto, konta, rachunek bankowy, iban, komórka, telefon, telefonu, tel, paszport, paszportu, prawo "
    "jazdy, dowód osobisty, dowodu osobistego, pesel, nip, sygnatura",
    "pt": "nome, nomes, apelido, apelidos, sobrenome, sobrenomes, chamo-me, me chamo, chama-se, se chama, morada, "
    "endereço, código postal, cep, moro, mora, moram, resido, reside, residente, senha, palavra-passe, password, "
    "pin, utilizador, usuário, login, nascido, nascida, nasci, nasceu, nascimento, aniversário, minha conta, sua "
    "conta, número de conta, conta bancária, iban, telemóvel, celular, telefone, tel, passaporte, carta de "
    "condução, carteira de motorista, cartão de cidadão, bilhete de identidade, nif, cpf, cnh, segurança social, "
    "referência, sr, sra, dona, dra",
}


@cache
def cues(language: str = "en") -> tuple[str, ...]:
    """With their accents and without; those of English for a language that has none here.

    >>> [cue for cue in cues("de") if cue.startswith("hei")]
    ['heiße', 'heisse', 'heißt', 'heisst', 'heißen', 'heissen']
    """
    listed = _CUES.get(language, _CUES["en"]).split(", ")
    return tuple(dict.fromkeys(form for cue in listed for form in (cue, _bare(cue))))


@cache
def cue_pattern(language: str = "en") -> str:
    """Any of them as words, whatever blanks and apostrophes there are; to be matched regardless of case."""
    words = (re.escape(cue).replace("\\ ", " +").replace("'", "['’]") for cue in cues(language))
    return rf"\b(?:{'|'.join(words)})\b"


def _bare(cue: str) -> str:
    apart = unicodedata.normalize("NFD", cue.replace("ß", "ss").replace("ł", "l"))
    return "".join(c for c in apart if not unicodedata.combining(c))
