// Names that callers give. Knows nothing of components.

/** The name, if it is one: nothing that leads to another folder. */
export function checked(name: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw `${JSON.stringify(name)} is not a name: 1 to 64 letters, digits, - and _`;
  return name;
}
