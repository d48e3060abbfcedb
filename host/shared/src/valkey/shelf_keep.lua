-- toolcell shelf_keep 1. Keeps resources for a holder, each in the place of the one of its origin and address.
-- KEYS: the last number given; all others begin as it does. ARGV: that beginning, the holder, its caller, for how many
-- milliseconds; the most and the most bytes of one holder and origin, of one caller, and of all; then of each resource
-- its origin, address, label and body.
local P, holder, caller, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local origin_max, origin_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local caller_max, caller_bytes = tonumber(ARGV[7]), tonumber(ARGV[8])
local all_max, all_bytes = tonumber(ARGV[9]), tonumber(ARGV[10])
-- Besides its label and body: entries of lists, and their memory.
local ENTRY_BYTES = 1024
-- Ends that are noticed at once.
local PIECE = 1000

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
-- Lists and accounts outlive what is in them: who comes late takes the rest off both.
local lists_ttl = string.format('%.0f', ttl + 60000)

local function remove(number)
    local about = redis.call('HGET', P .. 'about', number)
    redis.call('ZREM', P .. 'all', number)
    if not about then
        return
    end
    local h, o, c, u, bytes = string.match(about, '^(%x+) (%x+) (%x+) (%x+) (%d+)$')
    redis.call('HDEL', P .. 'about', number)
    redis.call('ZREM', P .. 'holder:' .. h, number)
    redis.call('ZREM', P .. 'origin:' .. h .. ':' .. o, number)
    redis.call('ZREM', P .. 'caller:' .. c, number)
    redis.call('ZREM', P .. 'uri:' .. h, u .. ':' .. o .. ':' .. number)
    redis.call('DEL', P .. 'one:' .. number)
    for _, account in ipairs({'all', 'origin:' .. h .. ':' .. o, 'caller:' .. c}) do
        if redis.call('DECRBY', P .. 'bytes:' .. account, bytes) <= 0 then
            redis.call('DEL', P .. 'bytes:' .. account)
        end
    end
end

-- The oldest make room.
local function bound(list, most, most_bytes)
    while redis.call('ZCARD', P .. list) > most
        or tonumber(redis.call('GET', P .. 'bytes:' .. list) or '0') > most_bytes do
        local oldest = redis.call('ZRANGE', P .. list, 0, 0)[1]
        if not oldest then
            return
        end
        remove(oldest)
    end
end

for _, number in ipairs(redis.call('ZRANGE', P .. 'all', '-inf', now, 'BYSCORE', 'LIMIT', 0, PIECE)) do
    remove(number)
end
for place = 11, #ARGV, 4 do
    local origin, uri, label, body = ARGV[place], ARGV[place + 1], ARGV[place + 2], ARGV[place + 3]
    local same = uri .. ':' .. origin .. ':'
    for _, member in ipairs(redis.call('ZRANGE', P .. 'uri:' .. holder, '[' .. same, '(' .. uri .. ':' .. origin .. ';', 'BYLEX')) do
        remove(string.sub(member, #same + 1))
    end
    local number = string.format('%.0f', redis.call('INCRBY', KEYS[1], 1))
    local bytes = string.format('%.0f', #label + #body + ENTRY_BYTES)
    local own, ours = 'origin:' .. holder .. ':' .. origin, 'caller:' .. caller
    redis.call('HSET', P .. 'one:' .. number, 'label', label, 'body', body)
    redis.call('PEXPIRE', P .. 'one:' .. number, lists_ttl)
    redis.call('HSET', P .. 'about', number, table.concat({holder, origin, caller, uri, bytes}, ' '))
    redis.call('ZADD', P .. 'all', now + ttl, number)
    redis.call('ZADD', P .. 'holder:' .. holder, number, number)
    redis.call('ZADD', P .. own, number, number)
    redis.call('ZADD', P .. ours, number, number)
    redis.call('ZADD', P .. 'uri:' .. holder, 0, same .. number)
    for _, account in ipairs({'all', own, ours}) do
        redis.call('INCRBY', P .. 'bytes:' .. account, bytes)
        redis.call('PEXPIRE', P .. 'bytes:' .. account, lists_ttl)
        redis.call('PEXPIRE', P .. account, lists_ttl)
    end
    for _, list in ipairs({'about', 'holder:' .. holder, 'uri:' .. holder}) do
        redis.call('PEXPIRE', P .. list, lists_ttl)
    end
    bound(own, origin_max, origin_bytes)
    bound(ours, caller_max, caller_bytes)
    bound('all', all_max, all_bytes)
end
redis.call('PEXPIRE', KEYS[1], lists_ttl)
return 1
