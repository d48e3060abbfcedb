-- toolcell tasks 2. Tasks of all replicas: calls whose results are asked for later.
-- KEYS: the last number given; all others begin as it does. ARGV: that beginning, the operation, then what it needs.
-- A status is a letter: w runs, i waits for answers, d has a result, f has an error, x was cancelled.
local P, op = ARGV[1], ARGV[2]
-- Ends that are noticed at once.
local PIECE = 1000
-- Lists and records outlive what is in them: who comes late takes the rest off both.
local LONGER = 60000
-- A result for which there is always room.
local SMALL = 1024
-- Processes say every three seconds that they run. Where none was heard for this long, the server was away, or its clock
-- leaped: none counts as ended until each had the time to say so again. It has that once for each silence.
local SILENCE, GRACE, DAY = 6000, 15000, 86400000
-- What a process says: that it runs, or that it ends.
local RUNS, ENDS = '1', '0'

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function whole(number)
    return string.format('%.0f', number)
end

local heard = redis.call('GET', P .. 'heard') or '0'
local is_silent = now < tonumber(heard) or now > tonumber(heard) + SILENCE
local grace_of, grace_until = string.match(redis.call('GET', P .. 'grace') or '', '^(%d+) (%d+)$')
grace_until = tonumber(grace_until or '0')
if is_silent and grace_of ~= heard then
    grace_until = now + GRACE
    redis.call('SET', P .. 'grace', heard .. ' ' .. whole(grace_until), 'PX', DAY)
end
local in_grace = now < grace_until and grace_until <= now + GRACE

local function one(id)
    return P .. 'one:' .. id
end

-- The caller, the number and the bytes of a task, whose record may have ended.
local function about(id)
    local found = redis.call('HGET', P .. 'about', id)
    if not found then
        return nil
    end
    return string.match(found, '^(%x+) (%d+) (%d+)$')
end

local function add(account, bytes)
    if bytes ~= 0 and redis.call('INCRBY', P .. 'bytes:' .. account, whole(bytes)) <= 0 then
        redis.call('DEL', P .. 'bytes:' .. account)
    end
end

local function used(account)
    return tonumber(redis.call('GET', P .. 'bytes:' .. account) or '0')
end

local function remove(id)
    local caller, _, bytes = about(id)
    redis.call('ZREM', P .. 'all', id)
    redis.call('DEL', one(id))
    if caller then
        redis.call('HDEL', P .. 'about', id)
        redis.call('ZREM', P .. 'caller:' .. caller, id)
        add('all', -tonumber(bytes))
        add('caller:' .. caller, -tonumber(bytes))
    end
end

-- Makes these the bytes of a task.
local function charge(id, bytes)
    local caller, number, before = about(id)
    redis.call('HSET', P .. 'about', id, caller .. ' ' .. number .. ' ' .. whole(bytes))
    add('all', bytes - tonumber(before))
    add('caller:' .. caller, bytes - tonumber(before))
end

local function status(id)
    return redis.call('HGET', one(id), 'status')
end

local function runs(id)
    local is = status(id)
    return is == 'w' or is == 'i'
end

-- Fields of questions and of answers: a letter before their keys.
local function fields(id, letter)
    local found = {}
    for _, field in ipairs(redis.call('HKEYS', one(id))) do
        if string.sub(field, 1, 2) == letter .. ':' then
            found[#found + 1] = field
        end
    end
    return found
end

local function clear(id, letter)
    for _, field in ipairs(fields(id, letter)) do
        redis.call('HDEL', one(id), field)
    end
end

local function finish(id, letter, body, message)
    redis.call('HSET', one(id), 'status', letter, 'body', body, 'message', message, 'changed', whole(now))
    clear(id, 'q')
    clear(id, 'a')
    charge(id, #body)
end

-- True once a process has said that it ends, or has said nothing for too long.
local function has_ended(process)
    local said = redis.call('GET', P .. 'process:' .. process)
    if said then
        return said == ENDS
    end
    return not in_grace
end

-- A task of this caller, whose process may have ended without a word.
local function own(id, caller, body, message)
    local of = about(id)
    if of ~= caller or not status(id) then
        return false
    end
    if runs(id) and has_ended(redis.call('HGET', one(id), 'process')) then
        finish(id, 'f', body, message)
    end
    return true
end

local function read(id, with_body)
    local record = redis.call('HMGET', one(id), 'status', 'message', 'created', 'changed', 'ttl')
    local _, number = about(id)
    local found = {id, number, record[1], record[2], record[3], record[4], record[5]}
    found[8] = with_body and redis.call('HGET', one(id), 'body') or ''
    for _, field in ipairs(fields(id, 'q')) do
        found[#found + 1] = string.sub(field, 3)
        found[#found + 1] = redis.call('HGET', one(id), field)
    end
    return found
end

for _, id in ipairs(redis.call('ZRANGE', P .. 'all', '-inf', now, 'BYSCORE', 'LIMIT', 0, PIECE)) do
    remove(id)
end

if op == 'runs' or op == 'create' then
    redis.call('SET', P .. 'heard', whole(now), 'PX', DAY)
end

if op == 'runs' then
    redis.call('SET', P .. 'process:' .. ARGV[3], RUNS, 'PX', ARGV[4])
    return 'done'
elseif op == 'leaves' then
    redis.call('SET', P .. 'process:' .. ARGV[3], ENDS, 'PX', ARGV[4])
    return 'done'
elseif op == 'create' then
    local id, caller, ttl, bytes = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
    local caller_max, all_max = tonumber(ARGV[7]), tonumber(ARGV[8])
    local caller_bytes, all_bytes = tonumber(ARGV[9]), tonumber(ARGV[10])
    redis.call('SET', P .. 'process:' .. ARGV[11], RUNS, 'PX', ARGV[12])
    if about(id) then
        return 'created'
    end
    if redis.call('ZCARD', P .. 'caller:' .. caller) >= caller_max or used('caller:' .. caller) + bytes > caller_bytes then
        return 'caller'
    end
    if redis.call('ZCARD', P .. 'all') >= all_max or used('all') + bytes > all_bytes then
        return 'full'
    end
    local number = whole(redis.call('INCR', KEYS[1]))
    redis.call('HSET', one(id), 'status', 'w', 'message', '', 'created', whole(now), 'changed', whole(now),
        'ttl', whole(ttl), 'process', ARGV[11], 'body', '')
    redis.call('PEXPIRE', one(id), whole(ttl + LONGER))
    redis.call('HSET', P .. 'about', id, caller .. ' ' .. number .. ' 0')
    redis.call('ZADD', P .. 'all', whole(now + ttl), id)
    redis.call('ZADD', P .. 'caller:' .. caller, number, id)
    charge(id, bytes)
    for _, list in ipairs({'number', 'about', 'all', 'caller:' .. caller, 'bytes:all', 'bytes:caller:' .. caller}) do
        if redis.call('PTTL', P .. list) < ttl + LONGER then
            redis.call('PEXPIRE', P .. list, whole(ttl + LONGER))
        end
    end
    return 'created'
elseif op == 'find' then
    return own(ARGV[3], ARGV[4], ARGV[5], ARGV[6]) and read(ARGV[3], true) or {}
elseif op == 'list' then
    local found = {}
    for _, id in ipairs(redis.call('ZRANGE', P .. 'caller:' .. ARGV[3], '(' .. ARGV[4], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[5])) do
        if own(id, ARGV[3], ARGV[6], ARGV[7]) then
            found[#found + 1] = read(id, false)
        end
    end
    return found
elseif op == 'says' then
    if not runs(ARGV[3]) then
        return 'over'
    end
    redis.call('HSET', one(ARGV[3]), 'message', ARGV[4], 'changed', whole(now))
    return 'done'
elseif op == 'asks' then
    if not runs(ARGV[3]) then
        return 'over'
    end
    clear(ARGV[3], 'q')
    clear(ARGV[3], 'a')
    for place = 4, #ARGV, 2 do
        redis.call('HSET', one(ARGV[3]), 'q:' .. ARGV[place], ARGV[place + 1])
    end
    redis.call('HSET', one(ARGV[3]), 'status', #ARGV > 3 and 'i' or 'w', 'changed', whole(now))
    return 'done'
elseif op == 'ends' then
    local id, body = ARGV[3], ARGV[5]
    if not runs(id) then
        -- Asked again after a loss, it was this very end.
        return status(id) == ARGV[4] and redis.call('HGET', one(id), 'body') == body and 'done' or 'over'
    end
    local caller, _, before = about(id)
    local function fits(account, most)
        return used(account) - tonumber(before) + #body <= tonumber(most)
    end
    if #body > SMALL and not (fits('caller:' .. caller, ARGV[7]) and fits('all', ARGV[8])) then
        return 'full'
    end
    finish(id, ARGV[4], body, ARGV[6])
    return 'done'
elseif op == 'answer' then
    local id = ARGV[3]
    if not own(id, ARGV[4], ARGV[5], ARGV[6]) then
        return 0
    end
    for place = 7, #ARGV, 2 do
        if redis.call('HDEL', one(id), 'q:' .. ARGV[place]) == 1 then
            redis.call('HSET', one(id), 'a:' .. ARGV[place], ARGV[place + 1])
        end
    end
    if status(id) == 'i' and #fields(id, 'q') == 0 then
        redis.call('HSET', one(id), 'status', 'w', 'changed', whole(now))
    end
    return 1
elseif op == 'pull' then
    if not runs(ARGV[3]) then
        return {'over'}
    end
    local found = {'runs'}
    for _, field in ipairs(fields(ARGV[3], 'a')) do
        found[#found + 1] = string.sub(field, 3)
        found[#found + 1] = redis.call('HGET', one(ARGV[3]), field)
    end
    clear(ARGV[3], 'a')
    return found
elseif op == 'cancel' then
    local id = ARGV[3]
    if not own(id, ARGV[4], ARGV[5], ARGV[6]) then
        return {}
    end
    local before = status(id)
    if runs(id) then
        finish(id, 'x', '', ARGV[7])
    end
    local found = read(id, true)
    table.insert(found, 1, before)
    return found
elseif op == 'forget' then
    remove(ARGV[3])
    return 'done'
end
return redis.error_reply('no such operation')
