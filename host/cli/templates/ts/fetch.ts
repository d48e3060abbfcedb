// The component's exports: the functions of wit/tool.wit, with their names in camelCase.

import type { Todo } from "local:tool/todos";

import { explained } from "./errors";

const API = "https://jsonplaceholder.typicode.com";

export const todos = explained({
  // A string that is thrown becomes the error of the `result`.
  async getTodo(id: number): Promise<Todo> {
    const url = `${API}/todos/${id}`;
    const answer = await fetch(url, { headers: { accept: "application/json" } }).catch((problem) => {
      throw `${url} cannot be fetched: ${problem.message}`;
    });
    const text = await answer.text();
    if (!answer.ok) throw `the API answers ${answer.status}: ${reason(text)}`;
    const { title, completed } = parsed(text);
    if (typeof title !== "string") throw "the API answers in another form";
    return { title, completed: completed === true };
  },
});

/** What an error says: its message, if it is JSON with one, else the beginning of its text. */
function reason(text: string): string {
  const { message } = parsed(text);
  return typeof message === "string" ? message : text.slice(0, 200);
}

/** The members of a JSON object; none where the text is something else. */
function parsed(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
