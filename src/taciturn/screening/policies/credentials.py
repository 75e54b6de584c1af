"""Keys, tokens, passwords and private keys. Preset "secrets" needs no extra; preset "detect-secrets" runs the expressions
of that package's detectors beside them.

The forms of the tokens are the ones their issuers document. A span covers the whole secret: every character of a token, a
private key from its first line to its last.
"""

from __future__ import annotations

from taciturn.screening.policies.shapes import Table, define

# Not inside a longer word; but a line end written as \\n, or a colour of a terminal, may come right before.
_L = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=\[\d\dm)|(?<=\[\dm))"
_A = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_T = r"[A-Za-z0-9_-]"  # a character of most tokens
_OPEN = r"(?:[bruf]?[\"'`]{1,3}|&quot;|\\+[\"'])"
_FAKE = "0Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St" * 3  # for examples, which must look like keys and be none

# What opens a value: "= '", ": ", "=> ", ", '" of a call, "define KEY '", "my password is ".
_ASSIGN = (
    r"[\"'`\])]{0,3}(?:\s{0,4}(?::?={1,3}|!={1,2}|=>|->|:|\|)\s{0,4}(?:(?:string|str|&str|char|const)\s{0,3}=\s{0,3})?"
    rf"{_OPEN}?|(?:\s{{0,3}},\s{{0,3}}|(?:[ \t]{{1,4}}|\\t)(?:is|was|to|of|by)?[ \t]{{0,3}}){_OPEN}"
    r"| (?:is|was|are|will be|should be|set to|and it'?s)[:\s]{1,3}[\"'`]?)"
)
_QUOTED = r"[^\"'`\s\\][^\"'`\n]{0,254}?(?=\\*[\"'`]|&quot;|\n|$)"
_BARE = r"[^\s\"'`,;<>()\[\]{}|&]{3,256}+"
_NOT = (
    r"(?!(?:null|none|nil|true|false|undefined|required|optional|empty|must|cannot|can|should|not|the|a|an|your|my|too|wrong"
    r"|incorrect"
    r"|too|wrong|incorrect"
    r"|invalid|expired|and|or|for|in|on|with|reset|protected|changed|self|this|os|env|process|getenv|get|input"
    r"|string|str)\b)"
)
_WORD = (
    r"(?:pa?ss?w(?:o?r)?s?d|pass(?:phrase|code|wort)|pwd|contraseña|mot de passe|kennwort|비밀번호|비번|パスワード|密码"
    r"|(?<![^\W_])(?:pass|pw|psw)(?![a-z]))"
)
_KEY = (
    r"(?:(?:api|access|secret|private|client|app|application|account|auth|oauth2?|encryption|signing|shared|master"
    r"|session|storage|"
    r"activation|licen[cs]e|consumer|service|user|deploy|bot|refresh|aes|hmac|jwt|sas|pass|crypto|wrap)[ _.-]?)?"
    r"(?:keys?|tokens?|secrets?|credentials?|cred|authorization|authentication|signature|bearer|salt|nonce|seed)"
)
# What follows a comma may be the name of the next entry: "key": "password", "value": "...".
_NO_NAME = r"(?![\w.-]{1,32}\\{0,3}[\"']\s{0,3}(?::|=))"

# A name and its value in two fields of an object, in two tags, or in attributes of one.
_SECRET_NAME = (
    rf"[\w .:/-]{{0,32}}(?:{_WORD}|(?:api|access|secret|private|client|app|account|auth|encryption|signing|shared"
    r"|master|session|storage|licen[cs]e|deploy|service)[ _.-]?keys?|tokens?|secrets?|credentials?|authorization"
    r"|cookie)[\w.-]{0,24}"
)
_FIELD = r"(?:key|name|field|id|label|param(?:eter)?|header|property|setting|variable|var|option|attribute|title|env)"
_VALUE = r"(?:value|val|content|data|text|default|string|secret)"
_QUOTE = r"\\{0,3}[\"'`]?"
_IS = rf"{_QUOTE}\s{{0,3}}(?::|=>?)\s{{0,3}}{_QUOTE}"
_NEXT = rf"{_QUOTE}\s{{0,8}}[,;]?\s{{0,40}}(?:- )?{_QUOTE}"
# Atomic: a field or a value ends in one way only, so that a row of fields is read once.
_OTHER = rf"(?>[\w.-]{{1,24}}+{_IS}(?:(?<=\")[^\"\n\\]{{0,64}}+|(?<=')[^'\n\\]{{0,64}}+|[\w./-]{{0,64}}+){_NEXT})"
_HELD = (
    r"(?!(?:null|none|nil|true|false|undefined)(?:[\s\"'`,;}<]|$))((?>(?<=\\[\"'])[^\"'\\\n]{1,512}"
    r"|(?<=\")(?:[^\"\\\n]|\\.){1,512}|(?<=')(?:[^'\\\n]|\\.){1,512}|(?<=`)[^`\n]{1,512}"
    r"|(?<=: )[^\s\"'`,;<>\[\]{}\\](?:[^\n\"'`,;<>\[\]{}]{0,254}[^\s\"'`,;<>\[\]{}])?(?=[ \t]{0,8}\r?(?:\n|$))"
    r"|[^\s\"'`,;<>()\[\]{}\\][^\s\"'`,;<>\[\]{}]{0,511}))"
)
_INSIDE = r"\s{0,40}(?:<!\[CDATA\[)?\s{0,8}([^\s<\]][^<\]\n]{0,511}?)\s{0,8}(?=<|\]\]>|\n|$)"
_ATTRIBUTES = r"(?: [^<>]{0,64})?"
_CELL = rf"\s{{0,8}}{_SECRET_NAME}:?\s{{0,8}}"
_LEAF = r"(?!\s{0,40}<(?!!\[CDATA))"  # no tag follows
_TAGS = "|".join(
    (
        rf"<{_FIELD}{_ATTRIBUTES}>{_CELL}</{_FIELD}>\s{{0,40}}<{_VALUE}{_ATTRIBUTES}>",
        rf"<(?:t[dh]|dt){_ATTRIBUTES}>{_CELL}</(?:t[dh]|dt)>\s{{0,40}}<(?:td|dd){_ATTRIBUTES}>",
        rf"<[\w:.-]{{1,32}}{_ATTRIBUTES} {_FIELD}=[\"']{_SECRET_NAME}[\"']{_ATTRIBUTES}>{_LEAF}",
        rf"<(?:[\w.-]{{1,32}}:)?[\w.-]{{0,24}}?(?:{_WORD}|api_?-?key|secret|token){_ATTRIBUTES}>{_LEAF}",
    )
)
# Tokens known by their beginning, or by their form where that is unmistakable; by kind of service.
_SERVICES = "|".join(
    (
        # models
        rf"hf_{_T}{{30,64}}|r8_{_T}{{30,64}}|gsk_{_T}{{40,64}}|pplx-{_T}{{40,64}}|tgp_v1_{_T}{{30,64}}|tvly-{_T}{{20,64}}",
        rf"llx-{_T}{{40,64}}|nvapi-{_T}{{50,80}}|xai-{_T}{{60,90}}|lsv2_(?:pt|sk)_\w{{40,64}}|cosmo_[0-9a-f]{{32}}",
        # mail
        rf"xkeysib-{_T}{{60,128}}|key-[0-9a-f]{{32}}|[0-9a-f]{{32}}-[0-9a-f]{{8}}-[0-9a-f]{{8}}|[A-Za-z0-9]{{32}}-us\d{{1,2}}",
        # payment
        rf"sq0[a-z]{{3}}-{_T}{{20,64}}|EAAA{_T}{{56,64}}|(?:rzp|whsec|sk|pk)_(?:live_|test_)?[A-Za-z0-9+/=]{{24,64}}",
        r"shp(?:at|ca|pa|ss|tka)_[0-9A-Za-z]{32,64}|access_token\$(?:production"
        r"|sandbox)\$[a-z0-9]{12,24}\$[0-9a-f]{20,40}",
        # clouds
        rf"do[opr]_v1_[0-9a-f]{{64}}|LTAI[A-Za-z0-9]{{12,20}}|akab-{_T}{{30,40}}|cf(?:at|ut|k)_\w{{40,80}}|nfp_{_T}{{30,64}}",
        rf"v1\.0-[0-9a-f]{{24}}-[0-9a-f]{{146}}|HRKU-{_T}{{36,64}}|vc[pkicr]_\w{{20,80}}|dnkey-{_T}{{50,128}}",
        r"dapi[0-9a-f]{32}(?:-\d)?|pscale_(?:pw|tkn|oauth|token)_[\w.-]{30,64}|sbp_(?:v0_)?[0-9a-f]{40}",
        # watching
        rf"gl(?:sa|c)_[A-Za-z0-9+/=_-]{{30,512}}|dt0c01\.[A-Z0-9]{{24}}\.[A-Z0-9]{{60,64}}|ph[acrsx]_{_T}{{30,64}}",
        rf"NR(?:AK|BR|II|JS|RA|IQ)-{_T}{{16,64}}|[A-Za-z0-9]{{20,48}}NRAL|sntry[su]_[A-Za-z0-9_=+/-]{{40,512}}",
        # building
        rf"dckr_[op]at_{_T}{{20,64}}|SWM(?:TKN|KEY)-1-{_T}{{40,128}}|dp\.(?:pt|st|ct|sa|scim|audit)\.{_T}{{20,64}}",
        rf"hv[sbr]\.{_T}{{20,512}}|[A-Za-z0-9]{{14}}\.atlasv1\.{_T}{{40,90}}|AKC[a-zA-Z0-9]{{30,128}}"
        rf"|sq[up]_[0-9a-f]{{40}}",
        rf"AT(?:ATT|CTT|BB|ST){_T}{{20,256}}(?:=[0-9A-F]{{8}})?|BBDC-[A-Za-z0-9+/=]{{40,64}}|PM(?:AK|AT)-{_T}{{20,80}}",
        r"rubygems_[0-9a-f]{48}|CLOJARS_[0-9a-f]{60}|oy2[a-z0-9]{43}|cmVmdGtuOj[A-Za-z0-9+/=]{40,128}",
        # offices
        rf"fig[do]_{_T}{{30,64}}|ntn_\w{{40,64}}|secret_[A-Za-z0-9]{{43}}|lin_(?:api|oauth)_\w{{32,80}}",
        rf"sl\.(?:u\.)?{_T}{{100,1200}}+|00D[A-Za-z0-9]{{12,15}}![\w.]{{60,128}}|3MVG[\w.]{{60,128}}"
        rf"|ops_{_T}{{60,1024}}+",
        # people
        rf"EAAC[A-Za-z0-9]{{60,256}}|IGQ{_T}{{40,256}}|\d{{12,18}}\|{_T}{{20,32}}|A{{20}}[A-Za-z0-9%]{{60,128}}|wx[0-9a-f]{{16}}",
        rf"\d{{8,10}}:AA{_T}{{33,35}}|[MNO][A-Za-z0-9_-]{{23,28}}\.{_T}{{6}}\.{_T}{{27,40}}",
        # keys of encryption, NTLM
        r"AGE-SECRET-KEY-1[0-9A-Z]{58}|S[UNOAC]A[A-Z2-7]{55}|TlRMTV[A-Za-z0-9+/=]{12,512}",
    )
)
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
            "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIB" + _FAKE + "\nAb0=\n-----END RSA PRIVATE " + "KEY-----",
            "-----BEGIN PRIVATE " + "KEY-----\\nMIIB" + _FAKE,
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
            "aws_secret_access_key = " + _FAKE[:40],
            group=1,
            check="random",
            ignore_case=True,
        ),
        define(
            "gcp-key",
            rf"{_A}(?:AIza{_T}{{35}}|GOCSPX-{_T}{{20,40}}|ya29\.{_T}{{20,}}+|1//0{_T}{{20,}}+"
            r"|\d{6,20}-[a-z0-9]{32}\.apps\.googleusercontent\.com)",
            "AIza" + _FAKE[:35],
        ),
        define(
            "azure-key",
            r"(?:AccountKey|SharedAccessKey|SharedSecretValue)=([A-Za-z0-9+/=]{20,128}+)"
            r"|(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])"
            r"|(?<![A-Za-z0-9])[A-Za-z0-9]{40,52}JQQJ99[A-Za-z0-9]{26,32}"
            r"|sig=[A-Za-z0-9%/+]{40,64}(?:=|%3[dD])?",
            "AccountKey=" + _FAKE[:86] + "==",
        ),
        define(
            "github-token",
            rf"{_L}(?:gh[pousr]_[A-Za-z0-9_.-]{{30,}}+|github_pat_\w{{36,}}+)",
            "ghp_" + _FAKE[:36],
            needs=("gh", "github_pat_"),
        ),
        define(
            "gitlab-token",
            rf"{_L}(?:gl(?:pat|dt|ft|soat|rt|rtr|cbt|imt|ptt|agent|oas|ffct|wt|feedtoken)-[\w.-]{{20,}}+"
            rf"|GR1348941{_T}{{20,}}+)",
            "glpat-" + _FAKE[:20],
        ),
        define(
            "slack-token",
            rf"{_L}(?:xox[a-z](?:\.xox[a-z])?-[\w-]{{10,}}+|xapp-\d-[\w-]{{10,}}+)|hooks\.slack\.com/(?:services"
            rf"|workflows|triggers)/[\w/-]{{20,}}+",
            "xoxb-" + "1234567890-" + _FAKE[:24],
        ),
        define(
            "discord-webhook",
            r"discord(?:app)?\.com/api/webhooks/\d{17,20}/[\w-]{60,80}",
            "https://discord.com/api/webhooks/" + "1" * 18 + "/" + _FAKE[:68],
        ),
        define(
            "stripe-key",
            rf"{_L}[prs]k_(?:live|test)_[A-Za-z0-9]{{10,}}+",
            "sk_" + "test_" + _FAKE[:24],
            needs=("_live_", "_test_"),
        ),
        define("twilio-key", rf"{_A}(?:AC|SK)[0-9a-fA-F]{{32}}(?![A-Za-z0-9])", "AC" + "0123456789abcdef" * 2),
        define(
            "sendgrid-key",
            rf"{_L}SG\.{_T}{{16,32}}\.{_T}{{16,64}}",
            "SG." + _FAKE[:22] + "." + _FAKE[:43],
            needs=("SG.",),
        ),
        define("npm-token", rf"{_L}npm_[A-Za-z0-9]{{36}}|_authToken=[\w.=/+-]{{20,}}+", "npm_" + _FAKE[:36]),
        define("pypi-token", rf"{_L}pypi-Ag[A-Za-z0-9_-]{{50,}}+", "pypi-AgEIcHlwaS5vcmc" + _FAKE, needs=("pypi-Ag",)),
        define(
            "openai-key",
            rf"{_L}sk-(?:proj-|svcacct-|admin-|ant-(?:api|admin)?\d{{0,2}}-?|or-v1-)?{_T}{{20,}}+",
            "sk-" + _FAKE[:48],
            needs=("sk-",),
        ),
        define(
            "jwt",
            rf"{_L}eyJ[A-Za-z0-9_=-]{{8,}}+(?:\.[A-Za-z0-9_=+/-]{{4,}}+){{0,5}}",
            "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJkYW5hIn0." + _FAKE[:43],
            needs=("eyJ",),
        ),
        define(
            "service-token",
            rf"{_L}(?:{_SERVICES})(?![A-Za-z0-9])",
            "hf_" + _FAKE[:34],
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
            "Authorization: Bearer " + _FAKE[:30],
            group=1,
            check="secret",
            ignore_case=True,
        ),
        define(
            "password",
            rf"{_WORD}[\w-]{{0,24}}(?: for \S{{1,30}}(?<!:))?{_ASSIGN}{_NOT}{_NO_NAME}((?<=[\"'`;]){_QUOTED}|{_BARE})",
            "password: hunter2",
            "PASSWORD='correct horse'",
            "my password is ravip",
            '"password": "hunter2"',
            group=1,
            ignore_case=True,
        ),
        define(
            "password-pair",
            rf"(?<![a-z]){_FIELD}{_IS}{_SECRET_NAME}{_NEXT}(?:{_OTHER}){{0,3}}?{_VALUE}{_IS}{_HELD}",
            '{"key": "password", "value": "hunter2"}',
            "- name: DB_PASSWORD\n  value: hunter2",
            label="password",
            group=1,
            ignore_case=True,
        ),
        define(
            "password-pair-back",
            rf"(?<![a-z]){_VALUE}{_IS}{_HELD}{_NEXT}(?:{_OTHER}){{0,3}}?{_FIELD}{_IS}{_SECRET_NAME}(?![\w.-])",
            '{"value": "hunter2", "key": "password"}',
            label="password",
            group=1,
            ignore_case=True,
        ),
        define(
            "password-tag",
            rf"(?:{_TAGS}){_INSIDE}",
            "<key>password</key><value>hunter2</value>",
            "<password>hunter2</password>",
            '<entry key="db.password">hunter2</entry>',
            label="password",
            needs=("<",),
            group=1,
            ignore_case=True,
        ),
        define(
            "password-option",
            r"(?:(?<![\w-])-u[ =]{1,3}[\"']?[^\s:\"']{1,64}:|ConvertTo-SecureString(?: -\w{1,20}){0,3} [\\\"']{0,2}"
            r"|(?<![\w-])--?(?:[a-z0-9]{1,20}[-_]){0,3}(?:pass(?:word|wd|phrase|code|in|out)?|pw|pwd|secret|token"
            r"|api-?key|bearer|secret_token)[ =]{1,3}[\"']?(?!-))"
            r"([^\s\"'|<>;]{3,128}+)",
            "mysql -u root --password hunter2",
            "--api-key=abc123",
            label="password",
            group=1,
            ignore_case=True,
        ),
        define(
            "password-sql",
            r"(?:(?-i:IDENTIFIED) (?:WITH \w{1,40} )?(?:BY|AS)(?: PASSWORD)? "
            r"|identified by (?=[\"'`\\])|(?<!\w)password (?=[\"'`]))"
            r"[\"'`\\]{0,3}([^\s\"'`;)\\]{3,128}+)",
            "CREATE USER dana IDENTIFIED BY 'hunter2'",
            label="password",
            group=1,
            ignore_case=True,
        ),
        define(
            "credential",
            rf"(?:{_KEY}|(?<![a-z])(?:api|pkey|creds?|pin|otp|2fa|totp)(?![a-z]))[\w-]{{0,24}}{_ASSIGN}{_NOT}{_NO_NAME}"
            r"([^\s\"'`,;<>()\[\]{}&\\]{6,512}+)",
            'api_key = "' + _FAKE[:20] + '"',
            "token: " + _FAKE[:16],
            group=1,
            check="secret",
            ignore_case=True,
        ),
        define(
            "high-entropy",
            r"(?<![\w/+.-])(?:(?<=[\"'`=:>])|(?<=[:=] ))(?:[A-Za-z0-9+/_-]{5}){4}[A-Za-z0-9+/_-]*+={0,2}(?![\w/+])",
            "x = '" + _FAKE[:32] + "'",
            check="random",
        ),
        define(
            "base64-line",
            r"(?<![\w+/=.-])(?=[A-Za-z0-9+/]{0,64}[A-Z])(?=[A-Za-z0-9+/]{0,64}\d)"
            r"(?:[A-Za-z0-9+/]{8}){5}[A-Za-z0-9+/]*+={0,2}(?![\w+/.-])",
            _FAKE[:64],
            check="random",
            label="high-entropy",
        ),
    )
)

SECRETS = tuple(TABLE)
"""Preset "secrets"."""
