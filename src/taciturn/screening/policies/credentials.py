"""Keys, tokens, passwords and private keys. Preset "secrets" needs no extra; preset "detect-secrets" runs the expressions
of that package's detectors beside them.

The forms of the tokens are the ones their issuers document. A span covers the whole secret: every character of a token, a
private key from its first line to its last.
"""

from __future__ import annotations

from taciturn.screening.policies.issued_tokens import FAKE, SERVICES
from taciturn.screening.policies.issued_tokens import TOKEN as _T
from taciturn.screening.policies.passwords import PASSWORDS
from taciturn.screening.policies.shapes import Table, define

# Not inside a longer word; but a line end written as \\n, or a colour of a terminal, may come right before.
_L = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=\[\d\dm)|(?<=\[\dm))"
_A = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
# One line of a key's body, in a file, quoted in source code, or in a log with line ends as \n.
_KEY_LINE = r"(?:\\+[nrt]|[\s\"'+,;|*#>.\\]){0,24}+[A-Za-z0-9+/=]{20,512}+"

TABLE: Table = dict(
    (
        define(
            "private-key",
            r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
            rf"(?:(?:(?!-----|---- )[\s\S]){{0,32768}}+-{{4,5}} ?END [A-Z0-9 ]{{0,50}}-{{4,5}}"
            rf"|(?:{_KEY_LINE}){{0,999}}+"
            r"(?:(?:\\+[nr]|[\s\"'+]){1,8}[A-Za-z0-9+/]{1,76}={0,2}(?![\w ]))?)",
            "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIB" + FAKE + "\nAb0=\n-----END RSA PRIVATE " + "KEY-----",
            "-----BEGIN PRIVATE " + "KEY-----\\nMIIB" + FAKE,
            needs=("PRIVATE KEY",),
        ),
        define(
            "private-key-file",
            r"PuTTY-User-Key-File-\d: [^\n]{1,64}\n(?:[^\n]{0,128}\n){1,200}?Private-MAC: [0-9a-f]{40,64}"
            r"|LS0tLS1CRUdJTi[A-Za-z0-9+/=\s]{20,}+",
            "LS0tLS1CRUdJTi" + "BQUklWQVRFIEtFWS0tLS0t",
            label="private-key",
            needs=("PuTTY-User-Key-File", "LS0tLS1CRUdJTi"),
        ),
        define(
            "aws-key",
            rf"{_A}(?:A3T[A-Z0-9]|A(?:BIA|CCA|KIA|SIA|GPA|IDA|ROA|IPA|NPA"
            rf"|NVA))[A-Z0-9]{{16}}(?![A-Za-z0-9])"
            rf"|{_L}(?:bedrock-api-key-{_T}{{20,}}+|ABSK[A-Za-z0-9+/=]{{40,}}+|da2-[a-z0-9]{{26}}"
            rf"|amzn\.mws\.[\w-]{{32,48}})",
            "AKIA" + "ABCDEFGH12345678",
        ),
        define(
            "aws-secret",
            r"(?:aws|amazon|secret|access)[^\n]{0,48}?[\"'=:>\s]((?:[A-Za-z0-9/+]{8}){5})(?![A-Za-z0-9/+=])",
            "aws_secret_access_key = " + FAKE[:40],
            group=1,
            check="random",
            ignore_case=True,
        ),
        define(
            "gcp-key",
            rf"{_A}(?:AIza{_T}{{35}}|GOCSPX-{_T}{{20,40}}|ya29\.{_T}{{20,}}+|1//0{_T}{{20,}}+"
            r"|\d{6,20}-[a-z0-9]{32}\.apps\.googleusercontent\.com)",
            "AIza" + FAKE[:35],
        ),
        define(
            "azure-key",
            r"(?:AccountKey|SharedAccessKey|SharedSecretValue)=([A-Za-z0-9+/=]{20,128}+)"
            r"|(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])"
            r"|(?<![A-Za-z0-9])[A-Za-z0-9]{40,52}JQQJ99[A-Za-z0-9]{26,32}"
            r"|sig=[A-Za-z0-9%/+]{40,64}(?:=|%3[dD])?",
            "AccountKey=" + FAKE[:86] + "==",
        ),
        define(
            "github-token",
            rf"{_L}(?:gh[pousr]_[A-Za-z0-9_.-]{{30,}}+|github_pat_\w{{36,}}+)",
            "ghp_" + FAKE[:36],
            needs=("gh", "github_pat_"),
        ),
        define(
            "gitlab-token",
            rf"{_L}(?:gl(?:pat|dt|ft|soat|rt|rtr|cbt|imt|ptt|agent|oas|ffct|wt|feedtoken)-[\w.-]{{20,}}+"
            rf"|GR1348941{_T}{{20,}}+)",
            "glpat-" + FAKE[:20],
        ),
        define(
            "slack-token",
            rf"{_L}(?:xox[a-z](?:\.xox[a-z])?-[\w-]{{10,}}+|xapp-\d-[\w-]{{10,}}+)|hooks\.slack\.com/(?:services"
            rf"|workflows|triggers)/[\w/-]{{20,}}+",
            "xoxb-" + "1234567890-" + FAKE[:24],
        ),
        define(
            "discord-webhook",
            r"discord(?:app)?\.com/api/webhooks/\d{17,20}/[\w-]{60,80}",
            "https://discord.com/api/webhooks/" + "1" * 18 + "/" + FAKE[:68],
        ),
        define(
            "stripe-key",
            rf"{_L}[prs]k_(?:live|test)_[A-Za-z0-9]{{10,}}+",
            "sk_" + "test_" + FAKE[:24],
            needs=("_live_", "_test_"),
        ),
        define("twilio-key", rf"{_A}(?:AC|SK)[0-9a-fA-F]{{32}}(?![A-Za-z0-9])", "AC" + "0123456789abcdef" * 2),
        define(
            "sendgrid-key",
            rf"{_L}SG\.{_T}{{16,32}}\.{_T}{{16,64}}",
            "SG." + FAKE[:22] + "." + FAKE[:43],
            needs=("SG.",),
        ),
        define("npm-token", rf"{_L}npm_[A-Za-z0-9]{{36}}|_authToken=[\w.=/+-]{{20,}}+", "npm_" + FAKE[:36]),
        define("pypi-token", rf"{_L}pypi-Ag[A-Za-z0-9_-]{{50,}}+", "pypi-AgEIcHlwaS5vcmc" + FAKE, needs=("pypi-Ag",)),
        define(
            "openai-key",
            rf"{_L}sk-(?:proj-|svcacct-|admin-|ant-(?:api|admin)?\d{{0,2}}-?|or-v1-)?{_T}{{20,}}+",
            "sk-" + FAKE[:48],
            needs=("sk-",),
        ),
        define(
            "jwt",
            rf"{_L}eyJ[A-Za-z0-9_=-]{{8,}}+(?:\.[A-Za-z0-9_=+/-]{{4,}}+){{0,5}}",
            "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJkYW5hIn0." + FAKE[:43],
            needs=("eyJ",),
        ),
        define(
            "service-token",
            rf"{_L}(?:{SERVICES})(?![A-Za-z0-9])",
            "hf_" + FAKE[:34],
            "shpat_" + "0123456789abcdef" * 2,
        ),
        define(
            "connection-string",
            r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>/:]{0,128}:[^\s\"'<>/]{1,128}@[^\s\"'<>]{1,512}+",
            "postgres://dana:" + "hunter2@db.example.org:5432/app",
            "https://dana:" + "pass@example.org",
            needs=("://",),
            ignore_case=True,
        ),
        define(
            "authorization",
            r"(?:authorization[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?:basic|bearer|token|ntlm|negotiate|digest|apikey"
            r"|aws4-hmac-sha256)?\s{0,3}|(?<!\w)bearer )"
            r"([A-Za-z0-9+/=_.~%-]{12,}+)",
            "Authorization: Basic ZGFuYTpo" + "dW50ZXIy",
            "Authorization: Bearer " + FAKE[:30],
            group=1,
            check="secret",
            ignore_case=True,
        ),
        *PASSWORDS.items(),
        define(
            "high-entropy",
            r"(?<![\w/+.-])(?:(?<=[\"'`=:>])|(?<=[:=] ))(?:[A-Za-z0-9+/_-]{5}){4}[A-Za-z0-9+/_-]*+={0,2}(?![\w/+])",
            "x = '" + FAKE[:32] + "'",
            check="random",
        ),
        define(
            "base64-line",
            r"(?<![\w+/=.-])(?=[A-Za-z0-9+/]{0,64}[A-Z])(?=[A-Za-z0-9+/]{0,64}\d)"
            r"(?:[A-Za-z0-9+/]{8}){5}[A-Za-z0-9+/]*+={0,2}(?![\w+/.-])",
            FAKE[:64],
            check="random",
            label="high-entropy",
        ),
    )
)

SECRETS = tuple(TABLE)
"""Preset "secrets"."""
