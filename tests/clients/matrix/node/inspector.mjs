// The page of the MCP Inspector in a headless Chromium, connected with toolcell: how it is opened, and what a person does
// on it. Holds no test.

import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';

import { startBrowser } from './browser.mjs';
import { check, options, until } from './conversation.mjs';

/** The revision of each era that the page speaks. */
export const REVISIONS = { legacy: '2025-11-25', modern: '2026-07-28' };

/** Longest wait for words on the page, on a busy machine. */
const PATIENCE_MS = 60_000;

/** Starts of the Inspector: it takes no free port by itself, and one that was free may be taken a moment later. */
const TRIES = 3;

/** A port of the loopback that nobody has now. */
function freePort() {
    const { promise, resolve } = Promise.withResolvers();
    const server = createServer().listen(0, '127.0.0.1', () => {
        const { port } = server.address();
        server.close(() => resolve(port));
    });
    return promise;
}

/** Starts the page's server. Returns its process, and the page's address or nothing. */
async function serveThePage() {
    const launcher = join(options.modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
    const era = ['--protocol-era', options.era];
    const target = options.url
        ? ['--server-url', options.url, '--transport', 'http', ...era]
        : [...era, options.toolcell, 'serve', '--manifest', join(options.folder, 'toolcell.toml')];
    const ports = { CLIENT_PORT: `${await freePort()}`, MCP_SANDBOX_PORT: `${await freePort()}` };
    const env = { ...process.env, ...ports, MCP_AUTO_OPEN_ENABLED: 'false', MCP_INSPECTOR_SECRET_STORE: 'memory' };
    const server = spawn(process.execPath, [launcher, '--web', ...target], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [server.stdout, server.stderr]) stream.on('data', text => (said += text));
    const address = () => said.match(/http:\/\/127\.0\.0\.1:\d+\S*TOKEN=\w+/)?.[0];
    await until(() => address() !== undefined || server.exitCode !== null, 'the Inspector says where its page is');
    return { server, address: address() };
}

export let served = await serveThePage();
for (let tries = 1; served.address === undefined && tries < TRIES; tries += 1) served = await serveThePage();
check(served.address !== undefined, 'the Inspector serves its page');
// Whichever way this program ends, the Inspector and its browser end with it.
process.on('exit', () => served.server.kill());

export const browser = await startBrowser(options.frameworks);
export const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
page.setDefaultTimeout(PATIENCE_MS);
// The page asks for fonts from afar.
await page.route('**/*', route => (['127.0.0.1', 'localhost'].includes(new URL(route.request().url()).hostname) ? route.continue() : route.abort()));

export const button = name => page.getByRole('button', { name, exact: true });
export const listed = name => page.getByRole('button', { name: new RegExp(`(^|\\n|\\s)${name}$`) });

/** Waits until the page shows all of these words. */
export async function shows(...words) {
    await until(async () => {
        const text = (await page.locator('body').innerText()).replace(/\s+/g, ' ');
        return words.every(word => text.includes(word));
    }, `the page shows ${words}`);
}

/** Clicks a switch on the label around it: its input is hidden. The page may draw both anew before the click. */
async function toggle(input) {
    await input.locator('..').click();
}

/** Fills in the form that is open, as JSON. */
export async function fillIn(args) {
    await toggle(page.getByLabel('Edit as JSON'));
    await page.locator('textarea.ace_text-input').first().focus();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(JSON.stringify(args));
}

/** Opens the page, and has it connect. */
export async function connect() {
    await page.goto(served.address);
    await toggle(page.getByRole('switch'));
    await shows('Connected', `MCP ${REVISIONS[options.era]}`);
    check(true, `the page says that it is connected, with ${REVISIONS[options.era]}`);
}

/** Ends the browser and the Inspector. */
export async function close() {
    await browser.close();
    served.server.kill();
}
