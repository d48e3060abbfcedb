// Opens each page of a console in a headless Chromium, in light and dark, wide and narrow, as a person with a keyboard
// and one with a screen reader would, and decides there as an operator does. What must hold of every page is in `look.mjs`.
//
// Usage: NODE pages.mjs --mode MODE --url URL --frameworks FOLDER --axe FOLDER [--cookie NAME=VALUE] [--shots FOLDER]
//                       [--pages /,/tools,…] [--mcp URL --folder FOLDER --token TOKEN --other-token TOKEN --issuer URL]
//                       [--pictures FOLDER]
//
// | mode | console |
// |---|---|
// | `plain`, `hostile` | that of the example `pages` with these samples; with --pages, these pages alone, of any console |
// | `served` | that of a server as `check.py` sets it up: an operator decides, others try to, and sessions end |
// | `locked` | the same for a server that serves what is pinned alone |
// | `signed` | the same, where another key signs next |
// | `hostile-served` | that of a server whose component says markup wherever it can |
// | `pictures` | that of a server: checks nothing, and draws the pictures of the documentation |
//
// The first token is that of the operator `ann`, the other one that of a caller who is not an operator. The paths of Node and
// both folders are those that `setup.sh console` prints.

import { finish, options } from './look.mjs';

const MODES = {
    plain: async () => (await import('./samples.mjs')).checkSamples(),
    hostile: async () => (await import('./samples.mjs')).checkSamples(),
    served: async () => (await import('./served.mjs')).checkServed(),
    locked: async () => (await import('./locked.mjs')).checkLocked(),
    signed: async () => (await import('./signed.mjs')).checkSigned(),
    'hostile-served': async () => (await import('./hostile.mjs')).checkHostile(),
    pictures: async () => (await import('./pictures.mjs')).drawPictures(),
};

await MODES[options.mode]();
await finish();
