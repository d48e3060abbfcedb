// A client of a server over HTTP, as one of 2026-07-28 that cannot ask: what agents call while an operator looks. Must not
// hold: checks.

import { request } from 'node:http';

import { options } from './look.mjs';

const REVISION = '2026-07-28';

/**
 * Calls a tool with somebody's token. Gives the status, and the result or the error; an answer that is a stream has
 * notifications before it.
 */
export function call(token, name, args = {}, client = 'console-check') {
    const _meta = {
        'io.modelcontextprotocol/protocolVersion': REVISION,
        'io.modelcontextprotocol/clientCapabilities': {},
        'io.modelcontextprotocol/clientInfo': { name: client, version: '1' },
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta } });
    const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        'mcp-protocol-version': REVISION,
        'mcp-method': 'tools/call',
        'mcp-name': name,
    };
    return new Promise((resolve, reject) => {
        // `fetch` gives up on a head that takes minutes.
        const sent = request(options.mcp, { method: 'POST', headers }, answer => {
            const pieces = [];
            answer.on('data', piece => pieces.push(piece));
            answer.on('error', reject);
            answer.on('end', () => resolve({ status: answer.statusCode, ...parsed(Buffer.concat(pieces).toString(), answer.headers['content-type']) }));
        });
        sent.on('error', reject);
        sent.end(body);
    });
}

function parsed(text, type = '') {
    const messages = type.startsWith('text/event-stream')
        ? text.split(/\r?\n\r?\n/).map(event => event.split(/\r?\n/).filter(line => line.startsWith('data:')).map(line => line.slice(5)).join('\n')).filter(Boolean)
        : [text];
    const answers = messages.filter(message => message.trim().startsWith('{')).map(message => JSON.parse(message));
    return answers.find(answer => answer.id === 1) ?? {};
}

/** The first text of an answer. */
export const said = answer => answer.result?.content?.[0]?.text ?? JSON.stringify(answer.error ?? answer);
