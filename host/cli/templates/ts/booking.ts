// A booking, in words. Knows nothing of components.

/** The form that the person fills in. */
export const DAY = {
  type: "object",
  properties: { day: { type: "string", title: "Day", format: "date" } },
  required: ["day"],
};

/** What came of it; `filledIn` is JSON, and absent where the person chose no day. */
export function booked(people: number, filledIn: string | undefined): string {
  if (filledIn === undefined) return "Nothing is booked: the person chose no day.";
  return `A table for ${people} is booked on ${JSON.parse(filledIn).day}.`;
}
