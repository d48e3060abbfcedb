"""What the two tools ask of others, and what they write of it. Has no data of its own."""

from typing import Any

from calling import CallFailed, call, call_all

ABOUT = 2
"""Degrees by which a city may be warmer or colder and still be about as warm."""


def trip(home: str, there: str, month: int) -> dict[str, Any]:
    """Three tools: what both cities are like, degrees for people who count in Fahrenheit, and other cities."""
    known = call_all("weather_normals", [{"city": city, "month": month} for city in (home, there)])
    for city in known:
        # A report needs both. Where one is missing, the caller reads what the tool said.
        if isinstance(city, CallFailed):
            raise city
    at_home, in_there = (city["months"][0] for city in known)
    fahrenheit = call("units_convert", value=in_there["high"], **{"from": "celsius", "to": "fahrenheit"})["value"]
    try:
        found = call(
            "weather_find",
            month=month,
            min_high=in_there["high"] - ABOUT,
            max_high=in_there["high"] + ABOUT,
            max_precipitation=in_there["precipitation"],
            limit=4,
        )["cities"]
    except CallFailed:
        # Without other cities there still is a report.
        found = []
    alike = [city["city"] for city in found if city["city"] != known[1]["city"]]
    warmer = in_there["high"] - at_home["high"]
    return {"report": written(known[0]["city"], known[1]["city"], in_there, warmer, fahrenheit, alike), "warmer": warmer, "alike": alike}


def written(home: str, there: str, month: dict[str, Any], warmer: int, fahrenheit: float, alike: list[str]) -> str:
    """The text of the report."""
    if warmer == 0:
        beside = f"as warm as in {home}"
    else:
        beside = f"{abs(warmer)} degrees {'warmer' if warmer > 0 else 'colder'} than in {home}"
    text = (
        f"{month['name']} in {there}: days of {month['high']} °C ({fahrenheit:.0f} °F), {beside}, "
        f"and {month['precipitation']:g} mm of rain."
    )
    return text + (f" About as warm and no wetter: {', '.join(alike)}." if alike else "")


def cities(cities: list[str], month: int) -> dict[str, Any]:
    """One tool for each item of a list, as many at once as the host allows."""
    return sorted_by_warmth(call_all("weather_normals", [{"city": city, "month": month} for city in cities]))


def sorted_by_warmth(ends: list[Any]) -> dict[str, Any]:
    """The cities that are known, the warmest first, and why the others are not."""
    known = [{"city": end["city"], "high": end["months"][0]["high"]} for end in ends if not isinstance(end, CallFailed)]
    return {
        "warmest_first": sorted(known, key=lambda city: -city["high"]),
        "not_found": [str(end) for end in ends if isinstance(end, CallFailed)],
    }
