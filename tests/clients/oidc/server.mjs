// A certified authorization server on a free port of the loopback, for the tests of logins. It prints its issuer. Whoever
// opens its pages is `ann`, or whom the cookie `test_user` names, and agrees. Run from a folder that has `node_modules`:
//
//   node server.mjs
//
// Besides the server's own endpoints there are
//   GET  /test/tokens             the requests of the token endpoint: kind of grant, client, status
//   GET  /test/issued             the access and refresh tokens that the token endpoint gave
//   POST /test/token-status?N     N for each request of the token endpoint from now on; 0: its own
//   POST /test/token-delay?N      waits N milliseconds before each answer of the token endpoint
//   POST /test/life?N             access tokens hold for N seconds
//   POST /test/hold-token?N       the next N requests of the token endpoint are served, and never answered
//   POST /test/hold-metadata?N    the same of its metadata
//   GET  /test/held               how many were
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages lie beside the folder that this is run in, not beside this file.
const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);

const test = { requests: [], issued: [], status: 0, delay: 0, life: 3600, hold: { token: 0, metadata: 0 }, held: 0 };
const server = createServer();
await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
const issuer = `http://127.0.0.1:${server.address().port}`;

const grants = ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"];
const provider = new Provider(issuer, {
  clients: [
    // A program of a desktop, as RFC 8252 has it: no secret, any port of the loopback.
    {
      client_id: "desk", application_type: "native", token_endpoint_auth_method: "none", grant_types: grants,
      redirect_uris: ["http://127.0.0.1/callback"],
    },
    {
      client_id: "office", application_type: "native", client_secret: "0ff1ce:+secret", grant_types: grants,
      redirect_uris: ["http://127.0.0.1/callback"],
    },
    // A server whose callers log in with their browsers, one login of each.
    {
      client_id: "callers", application_type: "native", token_endpoint_auth_method: "none", grant_types: grants,
      redirect_uris: ["http://127.0.0.1/return/notes", "http://127.0.0.1/return/mail"],
    },
    // It gets no refresh token.
    {
      client_id: "brief", application_type: "native", token_endpoint_auth_method: "none",
      grant_types: ["authorization_code"], redirect_uris: ["http://127.0.0.1/callback"],
    },
  ],
  cookies: { keys: ["only for tests"] },
  features: { devInteractions: { enabled: false }, deviceFlow: { enabled: true }, revocation: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/test/agree/${interaction.uid}` },
  issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
  rotateRefreshToken: true,
  scopes: ["openid", "notes.read", "notes.write"],
  ttl: { AccessToken: () => test.life, RefreshToken: 86400, Grant: 86400, Session: 86400, Interaction: 600, IdToken: 600 },
});

/// Agrees to everything in the person's name.
async function agree(request, response) {
  const { params, prompt, grantId } = await provider.interactionDetails(request, response);
  const accountId = /(?:^|; )test_user=(\w+)/.exec(request.headers.cookie ?? "")?.[1] ?? "ann";
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId } });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId, clientId: params.client_id });
  // Whatever is asked for, but for this one.
  grant.addOIDCScope((params.scope ?? "").split(" ").filter((scope) => scope !== "notes.write").join(" "));
  grant.rejectOIDCScope("notes.write");
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

function control(request, response, url) {
  const number = Number(url.search.slice(1));
  switch (`${request.method} ${url.pathname}`) {
    case "GET /test/tokens":
      return response.end(JSON.stringify(test.requests));
    case "GET /test/issued":
      return response.end(JSON.stringify(test.issued));
    case "POST /test/token-status":
      test.status = number;
      return response.end();
    case "POST /test/token-delay":
      test.delay = number;
      return response.end();
    case "POST /test/life":
      test.life = number;
      return response.end();
    case "POST /test/hold-token":
      test.hold.token = number;
      return response.end();
    case "POST /test/hold-metadata":
      test.hold.metadata = number;
      return response.end();
    case "GET /test/held":
      return response.end(String(test.held));
    default:
      response.statusCode = 404;
      return response.end();
  }
}

/// Serves the request as any other, but whoever asked hears nothing, if that was ordered.
function hold(kind, response) {
  if (test.hold[kind] === 0) return;
  test.hold[kind] -= 1;
  response.end = () => {
    test.held += 1;
    return response;
  };
}

const answer = provider.callback();
const seen = (ctx, status) => test.requests.push({
  grant: ctx.oidc?.params?.grant_type, client: ctx.oidc?.client?.clientId, status,
});
provider.on("grant.success", (ctx) => {
  seen(ctx, 200);
  test.issued.push(...[ctx.body?.access_token, ctx.body?.refresh_token].filter(Boolean));
});
provider.on("grant.error", (ctx, error) => seen(ctx, error.status ?? 500));

server.on("request", async (request, response) => {
  const url = new URL(request.url, issuer);
  try {
    if (url.pathname.startsWith("/test/agree/")) {
      await agree(request, response);
    } else if (url.pathname.startsWith("/test/")) {
      control(request, response, url);
    } else if (url.pathname === "/token") {
      await new Promise((goes) => setTimeout(goes, test.delay));
      if (test.status) {
        test.requests.push({ status: test.status });
        response.statusCode = test.status;
        response.end();
      } else {
        hold("token", response);
        answer(request, response);
      }
    } else {
      if (url.pathname.startsWith("/.well-known/")) hold("metadata", response);
      answer(request, response);
    }
  } catch (error) {
    console.error(error);
    response.statusCode = 500;
    response.end(String(error));
  }
});
console.log(issuer);
