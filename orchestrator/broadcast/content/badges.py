"""What stands beside an engine's name: its logo and its country's flag, as the roster has them.

A country is written as people write it: ISO 3166 (``no``, ``NOR``) or the code of FIDE and the
Olympic committee (``GER``). What is none of them stands in words on the card and has no flag.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import Any, Final

from orchestrator.season.fold import state as season_state

_REGIONAL: Final = 0x1F1E6 - ord("A")  # Unicode's regional indicator letters: two make a flag
# ISO 3166-1 alpha-3 and FIDE's codes, where they are more than a letter behind alpha-2.
_WORDS: Final = """
AND=AD ARG=AR ARM=AM AUS=AU AUT=AT AZE=AZ BAN=BD BGD=BD BEL=BE BIH=BA BLR=BY BOL=BO BRA=BR
BUL=BG BGR=BG CAN=CA CHE=CH SUI=CH CHI=CL CHL=CL CHN=CN COL=CO CRC=CR CRI=CR CRO=HR HRV=HR
CUB=CU CYP=CY CZE=CZ DEN=DK DNK=DK DEU=DE GER=DE ECU=EC EGY=EG ENG=GB ESP=ES EST=EE FIN=FI
FRA=FR GBR=GB GEO=GE GRE=GR GRC=GR HKG=HK HUN=HU INA=ID IDN=ID IND=IN IRI=IR IRN=IR IRL=IE
ISL=IS ISR=IL ITA=IT JPN=JP KAZ=KZ KOR=KR LAT=LV LVA=LV LTU=LT LUX=LU MAS=MY MYS=MY MDA=MD
MEX=MX MGL=MN MNG=MN MKD=MK MNE=ME NED=NL NLD=NL NOR=NO NZL=NZ PAR=PY PRY=PY PER=PE PHI=PH
PHL=PH POL=PL POR=PT PRT=PT ROU=RO RUS=RU SCO=GB SGP=SG SRB=RS SLO=SI SVN=SI SVK=SK RSA=ZA
ZAF=ZA SWE=SE THA=TH TPE=TW TWN=TW TUR=TR UKR=UA URU=UY URY=UY USA=US UZB=UZ VEN=VE VIE=VN
VNM=VN WLS=GB
"""
_CODES: Final = dict(word.split("=") for word in _WORDS.split())


def of_season(state: season_state.SeasonState) -> dict[str, dict[str, Any]]:
    """Return logo and flag by the engine's name, of those that have one."""
    made = {}
    for engine in (*state.launched.engines, *state.engines.values()):
        logo = state.launched.logos.get(engine.id)
        badge = {"logo": path(logo) if logo else None, "flag": flag(engine.country)}
        if any(badge.values()):
            made[engine.name] = badge
    return made


@functools.lru_cache(maxsize=1_024)
def flag(country: str) -> str | None:
    """Return the flag of a country as Unicode has it, None for what is no country's code."""
    word = country.strip().upper()
    code = _CODES.get(word, word if word in _CODES.values() else "")
    return "".join(chr(_REGIONAL + ord(letter)) for letter in code) or None


@functools.lru_cache(maxsize=1_024)
def path(logo: str) -> str:
    """Return where a logo (a PNG in Base64) is served: another picture has another name."""
    return f"logos/{hashlib.sha256(png(logo)).hexdigest()[:20]}.png"


def png(logo: str) -> bytes:
    """Return a journaled logo's bytes."""
    return base64.b64decode(logo)
