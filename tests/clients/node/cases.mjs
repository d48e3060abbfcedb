// Code that the Node clients share: the command line, the reading of cases.json, and the printing of claims.
//
// Usage of each client: NODE CLIENT.mjs --toolcell BINARY --cases cases.json --modules node_modules --mode MODE [--reload FOLDER | --asking FOLDER] [--at NAME=URL ...]
//
// A client starts a toolcell for each server that it talks with, except for those that --at names: they are served over
// HTTP already. NAME is a name in cases.json, or reload, or asking.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** A claim that does not hold. */
export class Failed extends Error {}

/** Prints the claim if it holds; otherwise ends the run with it. */
export function check(holdsTrue, claim, ...details) {
    if (!holdsTrue) {
        const shown = details.map(detail => (typeof detail === 'string' ? detail : JSON.stringify(detail)));
        throw new Failed([`FAILED ${claim}`, ...shown].join('\n  '));
    }
    console.log(`ok     ${claim}`);
}

/** The command line, and the cases it names. `negotiated` maps each mode to the revision it must negotiate. */
export function readRun(negotiated) {
    const option = { type: 'string' };
    const { values } = parseArgs({ options: { toolcell: option, cases: option, modules: option, mode: option, reload: option, asking: option, at: { ...option, multiple: true, default: [] } } });
    for (const name of ['toolcell', 'cases', 'modules', 'mode']) {
        if (values[name] === undefined) throw new Failed(`--${name} is missing`);
    }
    if (!(values.mode in negotiated)) throw new Failed(`--mode is one of ${Object.keys(negotiated)}`);
    const folder = dirname(resolve(values.cases));
    return {
        ...values,
        cases: JSON.parse(readFileSync(values.cases, 'utf8')),
        revision: negotiated[values.mode],
        modern: negotiated[values.mode] === '2026-07-28',
        at: Object.fromEntries(values.at.map(place => [place.slice(0, place.indexOf('=')), place.slice(place.indexOf('=') + 1)])),
        serve: server => ['serve', '--manifest', resolve(folder, server.manifest), ...(server.options ?? [])]
    };
}

const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The places where `value` differs from `pattern`. Objects may hold more than the pattern names; lists may not. */
export function mismatches(pattern, value, path = '$') {
    const show = thing => JSON.stringify(thing)?.slice(0, 600);
    if (isObject(pattern)) {
        const [[operator, operand] = ['']] = Object.entries(pattern);
        if (operator.startsWith('$') && Object.keys(pattern).length === 1) {
            return holds(operator, operand, value) ? [] : [`${path}: ${show(value)} is not ${operator} ${show(operand)}`];
        }
        if (!isObject(value)) return [`${path}: ${show(value)} is not an object`];
        return Object.keys(pattern).flatMap(key =>
            key in value ? mismatches(pattern[key], value[key], `${path}.${key}`) : [`${path}: no "${key}" in ${show(value)}`]
        );
    }
    if (Array.isArray(pattern)) {
        if (!Array.isArray(value) || value.length !== pattern.length) {
            return [`${path}: ${show(value)} is not a list of ${pattern.length}`];
        }
        return pattern.flatMap((want, at) => mismatches(want, value[at], `${path}[${at}]`));
    }
    return pattern === value ? [] : [`${path}: ${show(value)} is not ${show(pattern)}`];
}

/** True if this operator of cases.json holds for `value`. */
function holds(operator, operand, value) {
    switch (operator) {
        case '$contains':
            return typeof value === 'string' && value.includes(operand);
        case '$bytes': // base64 of bytes that begin with these, in hexadecimal
            return typeof value === 'string' && Buffer.from(value, 'base64').toString('hex').startsWith(operand);
        case '$atLeast':
            return typeof value === 'number' && value >= operand;
        default:
            throw new Failed(`cases.json: no operator ${operator}`);
    }
}

/** The list names exactly the tools that the cases call, and their definitions arrive. */
export function checkDefinitions(tools, server) {
    const names = tools.map(tool => tool.name).sort();
    const called = [...new Set([...server.calls, ...server.refusals].map(example => example.tool))].sort();
    check(names.join() === called.join(), 'every listed tool is called by a case', names, called);
    check(tools.every(tool => tool.description), 'every tool says what it does', tools);
    const wrong = mismatches(server.definitions, Object.fromEntries(tools.map(tool => [tool.name, tool])));
    check(wrong.length === 0, 'titles, hints, icons and schemas arrive', ...wrong);
}

/** Runs a client. A claim that does not hold is shown as it is, any other error with its stack. */
export async function main(run) {
    try {
        await run();
    } catch (error) {
        console.error(error instanceof Failed ? error.message : error);
        process.exit(1);
    }
}
