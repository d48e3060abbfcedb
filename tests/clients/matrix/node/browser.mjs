// The Chromium that the Inspector's page runs in: unpacked when it is installed, and started. Holds no test.
//
// Usage: NODE browser.mjs --unpack FOLDER    unpacks the Chromium of FOLDER/node_modules into FOLDER/browser

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
`;

// The package's arguments that take walls between pages down. The Inspector shows no view without those.
const UNGUARDED = ['--disable-web-security', '--disable-site-isolation-trials', '--allow-running-insecure-content', '--single-process', '--no-zygote'];

/** A package of the folder that `setup.sh frameworks` installed. Node does not find it by name from here. */
export async function packaged(folder, name) {
    const resolver = createRequire(join(folder, 'here.mjs'));
    return import(pathToFileURL(resolver.resolve(name)));
}

/** Chromium, its libraries and fonts lie in one folder, as the package puts them into the folder of temporary files. */
function settle(folder) {
    const browser = join(folder, 'browser');
    process.env.TMPDIR = browser;
    process.env.FONTCONFIG_PATH = join(browser, 'fonts');
    return browser;
}

// Times that the browser is started until it runs.
const STARTS = 3;

/** Starts the browser. Chromium's own sandbox stays off, as in containers: it opens one page, which is ours. */
export async function startBrowser(folder) {
    const browser = settle(folder);
    const { default: chromium } = await packaged(folder, '@sparticuz/chromium');
    const { default: playwright } = await packaged(folder, 'playwright-core');
    const env = { ...process.env, LD_LIBRARY_PATH: join(browser, 'al2023/lib') };
    delete env.TMPDIR;
    const args = chromium.args.filter(arg => !UNGUARDED.includes(arg));
    const options = { executablePath: join(browser, 'chromium'), args, headless: true, env };
    // Once in some hundred starts Chromium breaks before it has a window.
    for (let left = STARTS; ; left -= 1) {
        try {
            return await playwright.chromium.launch(options);
        } catch (broken) {
            if (left === 1) throw broken;
            console.error(`Chromium did not start, and is started again: ${broken.message.split('\n')[0]}`);
        }
    }
}

if (process.argv[2] === '--unpack') {
    const folder = process.argv[3];
    mkdirSync(settle(folder));
    const { default: chromium, inflate } = await packaged(folder, '@sparticuz/chromium');
    await chromium.executablePath();
    const packed = join(folder, 'node_modules/@sparticuz/chromium/bin');
    // The libraries that a machine without a desktop may lack.
    await inflate(join(packed, 'al2023.tar.br'));
    rmSync(packed, { recursive: true });
    // The package looks for its fonts where it would unpack them itself. Without fonts a page has no text.
    writeFileSync(join(folder, 'browser/fonts/fonts.conf'), FONTS);
}
