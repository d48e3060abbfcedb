// What the two tools ask of others, and what they write of it. Has no data of its own.

import { CallFailed } from "./calling.js";

// Degrees by which a city may be warmer or colder and still be about as warm.
const ABOUT = 2;

/** Three tools: what both cities are like, degrees for people who count in Fahrenheit, and other cities. */
export function trip(calling, { from, to, month }) {
  const known = calling.callAll("weather_normals", [from, to].map((city) => ({ city, month })));
  // A report needs both. Where one is missing, the caller reads what the tool said.
  const missing = known.find((city) => city instanceof CallFailed);
  if (missing) throw missing;
  const [home, there] = known;
  const [inThere] = there.months;
  const celsius = { value: inThere.high, from: "celsius", to: "fahrenheit" };
  const { value: fahrenheit } = calling.call("units_convert", celsius);
  const alike = similar(calling, month, inThere).filter((city) => city !== there.city);
  const warmer = inThere.high - home.months[0].high;
  return { report: written(home.city, there.city, inThere, warmer, fahrenheit, alike), warmer, alike };
}

/** Cities that are about as warm and no wetter. Without them there still is a report. */
function similar(calling, month, { high, precipitation }) {
  const wanted = { month, min_high: high - ABOUT, max_high: high + ABOUT, max_precipitation: precipitation, limit: 4 };
  try {
    return calling.call("weather_find", wanted).cities.map(({ city }) => city);
  } catch (problem) {
    if (problem instanceof CallFailed) return [];
    throw problem;
  }
}

/** The text of the report. */
export function written(home, there, { name, high, precipitation }, warmer, fahrenheit, alike) {
  const degrees = `${Math.abs(warmer)} degrees ${warmer > 0 ? "warmer" : "colder"} than in ${home}`;
  const beside = warmer === 0 ? `as warm as in ${home}` : degrees;
  const days = `days of ${high} °C (${fahrenheit.toFixed(0)} °F)`;
  const text = `${name} in ${there}: ${days}, ${beside}, and ${precipitation} mm of rain.`;
  return alike.length ? `${text} About as warm and no wetter: ${alike.join(", ")}.` : text;
}

/** One tool for each item of a list, as many at once as the host allows. */
export function cities(calling, { cities, month }) {
  const ends = calling.callAll("weather_normals", cities.map((city) => ({ city, month })));
  const known = ends.filter((end) => !(end instanceof CallFailed));
  const failed = ends.filter((end) => end instanceof CallFailed);
  const warmth = known.map(({ city, months }) => ({ city, high: months[0].high }));
  return { warmest_first: warmth.sort((one, other) => other.high - one.high), not_found: failed.map(({ message }) => message) };
}
