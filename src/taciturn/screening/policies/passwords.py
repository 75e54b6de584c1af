"""Passwords and keys that are known by the name before them: in prose, in code, in options, in fields and tags."""

from __future__ import annotations

from taciturn.screening.policies.issued_tokens import FAKE
from taciturn.screening.policies.shapes import Table, define

_OPEN = r"(?:[bruf]?[\"'`]{1,3}|&quot;|\\+[\"'])"
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

PASSWORDS: Table = dict(
    (
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
            'api_key = "' + FAKE[:20] + '"',
            "token: " + FAKE[:16],
            group=1,
            check="secret",
            ignore_case=True,
        ),
    )
)
