"""Tokens of services that are known by how they begin, or by their form where that is unmistakable, in the forms that their
issuers document; by kind of service."""

from __future__ import annotations

TOKEN = _T = r"[A-Za-z0-9_-]"  # a character of most tokens
FAKE = "0Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St" * 3  # for examples, which must look like keys and be none
SERVICES = "|".join(
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
