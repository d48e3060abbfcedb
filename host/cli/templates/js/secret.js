// The component's exports: the functions of wit/tool.wit, with their names in camelCase.

import { explained } from "./errors.js";

const API = "https://api.github.com";

export const account = explained({
  // A string that is thrown becomes the error of the `result`.
  async whoAmI() {
    const url = `${API}/user`;
    // There is no token here: the host adds it, as toolcell.toml says.
    const headers = { accept: "application/json", "user-agent": "{{name}}" };
    const answer = await fetch(url, { headers }).catch((problem) => {
      throw `${url} cannot be fetched: ${problem.message}`;
    });
    if (answer.status === 401) throw "the API refuses the token: is the variable TOKEN set where toolcell runs?";
    if (!answer.ok) throw `the API answers ${answer.status}: ${(await answer.text()).slice(0, 200)}`;
    const { login, name } = Object(await answer.json());
    if (typeof login !== "string") throw "the API answers in another form";
    return { login, name: name ?? undefined };
  },
});
