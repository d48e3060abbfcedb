// Stand-ins of sigstore's services on a free port of the loopback: Fulcio, its log of certificates, Rekor, a timestamp
// authority. Each process has keys of its own, so each is a trust root of its own. It prints its address once it listens.
// Run from a folder that has `node_modules`:
//
//   node keyless.mjs FOLDER     writes FOLDER/trusted_root.json, the root that its signatures are verified with
//
// Besides the services' own endpoints there is
//   POST /sign    {identity, issuer, statement, witness} -> a sigstore bundle of that statement; the witness is
//                 "rekor", "tsa", "both" or "none"
//
// sigstore's own client for Node signs, over HTTP, as it does in a workflow. The certificates it gets hold ten minutes.
import { createHash, generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages lie beside the folder that this is run in, not beside this file.
const require = createRequire(pathToFileURL(`${process.cwd()}/`));

// The mock writes the milliseconds of a Date into its timestamps. Those of the public service have whole seconds.
const Exact = Date;
globalThis.Date = class extends Exact {
  constructor(...parts) {
    super(...(parts.length ? parts : [Math.floor(Exact.now() / 1000) * 1000]));
  }
};
const sigstore = require("@sigstore/mock");
const { DSSEBundleBuilder, FulcioSigner, RekorWitness, TSAWitness } = require("@sigstore/sign");
const { bundleToJSON } = require("@sigstore/bundle");

const IN_TOTO = "application/vnd.in-toto+json";
// The largest request. A statement has some hundred bytes.
const BODY_BYTES_MAX = 1 << 20;

const [folder] = process.argv.slice(2);
const server = createServer();
await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
const url = `http://127.0.0.1:${server.address().port}`;

// Fulcio's keys are of P-384 in the public instance too, all others of P-256.
const keys = (namedCurve = "prime256v1") => generateKeyPairSync("ec", { namedCurve });
const certificateLog = await sigstore.initializeCTLog(keys());
const authority = await sigstore.initializeCA(keys("secp384r1"), certificateLog);
const log = await sigstore.initializeTLog(url, keys());
const timestamps = await sigstore.initializeTSA(keys());

const sha256 = (bytes) => createHash("sha256").update(bytes).digest();
const base64 = (bytes) => Buffer.from(bytes).toString("base64");

/// The entry that Rekor keeps of a proposed one: of an envelope it keeps the digests and signatures only.
function kept(proposed) {
  if (proposed.kind !== "dsse") return proposed;
  const { envelope, verifiers } = proposed.spec.proposedContent;
  const { payload, signatures } = JSON.parse(envelope);
  const digest = (bytes) => ({ algorithm: "sha256", value: sha256(bytes).toString("hex") });
  return {
    apiVersion: "0.0.1",
    kind: "dsse",
    spec: {
      envelopeHash: digest(envelope),
      payloadHash: digest(Buffer.from(payload, "base64")),
      signatures: signatures.map(({ sig }, at) => ({ signature: sig, verifier: verifiers[at] })),
    },
  };
}

/// A certificate. cosign sends its token in a header and its request in base64, and takes no other status than 200.
async function certificate(body, { authorization }) {
  const asked = JSON.parse(body);
  asked.credentials ??= { oidcIdentityToken: authorization?.replace(/^Bearer /, "") };
  if (asked.certificateSigningRequest && !asked.certificateSigningRequest.startsWith("-----")) {
    asked.certificateSigningRequest = Buffer.from(asked.certificateSigningRequest, "base64").toString();
  }
  const answered = await fulcio.fn(JSON.stringify(asked));
  return { ...answered, statusCode: answered.statusCode === 201 ? 200 : answered.statusCode };
}

/// An entry of the log. cosign looks for it by the name in this header.
async function logged(body) {
  const answered = await rekor.fn(body.toString());
  const made = answered.statusCode === 201;
  return { ...answered, headers: made ? { etag: Object.keys(JSON.parse(answered.response))[0] } : {} };
}

/// A token as an issuer gives it. The stand-in of Fulcio believes each.
function token(issuer, identity) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const hour = Math.floor(Date.now() / 1000) + 3600;
  return `${part({ alg: "none" })}.${part({ iss: issuer, sub: identity, aud: "sigstore", exp: hour })}.${part({})}`;
}

/// A bundle of a statement, signed by sigstore's client.
async function sign({ identity, issuer, statement, witness }) {
  const witnesses = [];
  if (["rekor", "both"].includes(witness)) witnesses.push(new RekorWitness({ rekorBaseURL: url, retry: false }));
  if (["tsa", "both"].includes(witness)) witnesses.push(new TSAWitness({ tsaBaseURL: url, retry: false }));
  const identityProvider = { getToken: async () => token(issuer, identity) };
  const signer = new FulcioSigner({ fulcioBaseURL: url, identityProvider, retry: false });
  const bundle = await new DSSEBundleBuilder({ signer, witnesses }).create({
    data: Buffer.from(JSON.stringify(statement)),
    type: IN_TOTO,
  });
  return { statusCode: 200, response: JSON.stringify(bundleToJSON(bundle)), contentType: "application/json" };
}

const fulcio = sigstore.fulcioHandler(authority);
const timestamp = sigstore.tsaHandler(timestamps);
const rekor = sigstore.rekorHandler({ log: (proposed) => log.log(kept(proposed)) });
const endpoints = {
  [fulcio.path]: certificate,
  [rekor.path]: logged,
  [timestamp.path]: (body) => timestamp.fn(body.toString()),
  "/sign": (body) => sign(JSON.parse(body)),
};

async function answer(request, response) {
  const endpoint = request.method === "POST" && endpoints[new URL(request.url, url).pathname];
  if (!endpoint) return response.writeHead(404).end();
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) return response.writeHead(413).end();
    chunks.push(chunk);
  }
  const answered = await endpoint(Buffer.concat(chunks), request.headers);
  const type = answered.contentType ? { "content-type": answered.contentType } : {};
  response.writeHead(answered.statusCode, { ...type, ...answered.headers }).end(answered.response);
}

server.on("request", (request, response) => {
  answer(request, response).catch((problem) => {
    console.error(problem);
    response.writeHead(500).end(String(problem));
  });
});

// Everything here began at most an hour ago.
const validFor = { start: new Date(Date.now() - 3_600_000).toISOString() };
const chain = (...certificates) => ({ certificates: certificates.map((rawBytes) => ({ rawBytes: base64(rawBytes) })) });
const loggedBy = (key) => ({
  baseUrl: url,
  hashAlgorithm: "SHA2_256",
  publicKey: { rawBytes: base64(key), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
  logId: { keyId: base64(sha256(key)) },
});
const by = (commonName, certChain) => ({ subject: { organization: "sigstore.mock", commonName }, uri: url, certChain, validFor });
const root = {
  mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
  tlogs: [loggedBy(log.publicKey)],
  certificateAuthorities: [by("sigstore", chain(authority.rootCertificate))],
  ctlogs: [loggedBy(certificateLog.publicKey)],
  timestampAuthorities: [by("tsa", chain(timestamps.intCertificate, timestamps.rootCertificate))],
};
writeFileSync(join(folder, "trusted_root.json"), JSON.stringify(root));
console.log(url);
