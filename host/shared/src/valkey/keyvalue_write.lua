-- toolcell keyvalue_write 1. Sets, deletes or counts up entries of one bucket within a quota: all or nothing.
-- KEYS: the bucket's entries, their order, the component's accounts, its last serial, this request.
-- ARGV: the operation, the namespace, bytes and entries that it may hold, namespaces of the component, bytes of a
-- value, milliseconds for which the request is known; then keys and values, or keys, or a key and a number.
-- Everything is looked at before anything is written: a script that ends early takes nothing back.
local entries, order, accounts, serials, request = unpack(KEYS)
local operation, namespace = ARGV[1], ARGV[2]
local bytes_max, count_max, namespaces_max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local value_max, known_ms, first = tonumber(ARGV[6]), ARGV[7], 8
-- As many as Lua's stack has room for, with more to spare than a call takes.
local PIECE = 1000

local answered = redis.call('GET', request)
if answered then
    return {'done', answered}
end

-- Bytes of an entry as the operation leaves it; false where it leaves none.
local sizes = {}
local function size(key)
    local bytes = sizes[key]
    if bytes == nil then
        bytes = redis.call('HSTRLEN', entries, key)
        if bytes > 0 or redis.call('HEXISTS', entries, key) == 1 then
            bytes = bytes + #key
        else
            bytes = false
        end
        sizes[key] = bytes
    end
    return bytes
end

-- Decimal digits without leading zeros, or nothing.
local function digits(text)
    if #text == 0 or #text > 20 or string.find(text, '%D') then
        return nil
    end
    text = string.gsub(text, '^0+', '')
    return text == '' and '0' or text
end

-- The sum of decimal digits: a number of Lua is exact up to 2^53 alone.
local function sum(one, other)
    local length, carry, places = math.max(#one, #other), 0, {}
    one, other = string.rep('0', length - #one) .. one, string.rep('0', length - #other) .. other
    for place = length, 1, -1 do
        local digit = string.byte(one, place) + string.byte(other, place) - 96 + carry
        carry = digit > 9 and 1 or 0
        places[place] = digit - 10 * carry
    end
    return (carry == 1 and '1' or '') .. table.concat(places)
end

local MOST = '18446744073709551615'
local function fits(number)
    return #number < #MOST or (#number == #MOST and number <= MOST)
end

local account = redis.call('HGET', accounts, namespace)
local bytes_before, count_before = 0, 0
if account then
    local held_bytes, held_count = string.match(account, '^(%d+) (%d+)$')
    bytes_before, count_before = tonumber(held_bytes), tonumber(held_count)
end
local bytes, count = bytes_before, count_before

-- Holds the content to the quota and what is spare above it. Content from before a quota was lowered stays.
local function over(bytes_spare, count_spare)
    if bytes > math.max(bytes_max, bytes_before) + bytes_spare then
        return {'bytes', string.format('%.0f', bytes_before), string.format('%.0f', bytes)}
    end
    if count > math.max(count_max, count_before) + count_spare then
        return {'entries', string.format('%.0f', count)}
    end
end

local pairs_at, pairs_end, pairs_of = first, #ARGV, ARGV
local answer = ''
if operation == 'add' then
    local held = redis.call('HSTRLEN', entries, ARGV[first]) <= 20 and redis.call('HGET', entries, ARGV[first])
    if held == false and redis.call('HEXISTS', entries, ARGV[first]) == 0 then
        held = '0'
    end
    local number = held and digits(held)
    if not number or not fits(number) then
        return {'no_number'}
    end
    answer = sum(number, ARGV[first + 1])
    if not fits(answer) then
        return {'overflow'}
    end
    if #answer > value_max then
        return {'value', tostring(#answer)}
    end
    pairs_at, pairs_end, pairs_of = 1, 2, {ARGV[first], answer}
end

if operation == 'delete' then
    local gone = {}
    for place = first, #ARGV do
        local key = ARGV[place]
        local held = size(key)
        if held then
            bytes, count, sizes[key] = bytes - held, count - 1, false
            gone[#gone + 1] = key
        end
    end
    if #gone == 0 then
        return {'done', ''}
    end
    -- These free memory, so a full server does them; what a script does after them it does as well.
    for from = 1, #gone, PIECE do
        local to = math.min(from + PIECE - 1, #gone)
        redis.call('HDEL', entries, unpack(gone, from, to))
        redis.call('ZREM', order, unpack(gone, from, to))
    end
else
    local fresh = {}
    for place = pairs_at, pairs_end, 2 do
        local key = pairs_of[place]
        local held = size(key)
        if held then
            bytes = bytes - held
        else
            count = count + 1
            fresh[#fresh + 1] = key
        end
        sizes[key] = #key + #pairs_of[place + 1]
        bytes = bytes + sizes[key]
        -- The rest of a batch frees at most the bytes that were there before it.
        local refused = over(bytes_before, count_before)
        if refused then
            return refused
        end
    end
    local refused = over(0, 0)
    if refused then
        return refused
    end
    if count_before == 0 and count > 0 and redis.call('HLEN', accounts) >= namespaces_max then
        return {'namespaces'}
    end
    for from = pairs_at, pairs_end, 2 * PIECE do
        redis.call('HSET', entries, unpack(pairs_of, from, math.min(from + 2 * PIECE - 1, pairs_end)))
    end
    if #fresh > 0 then
        local serial = redis.call('INCRBY', serials, #fresh) - #fresh
        for from = 1, #fresh, PIECE do
            local members = {}
            for place = from, math.min(from + PIECE - 1, #fresh) do
                members[#members + 1] = string.format('%.0f', serial + place)
                members[#members + 1] = fresh[place]
            end
            redis.call('ZADD', order, unpack(members))
        end
    end
end
if count == 0 then
    redis.call('HDEL', accounts, namespace)
else
    redis.call('HSET', accounts, namespace, string.format('%.0f %.0f', bytes, count))
end
redis.call('SET', request, answer, 'PX', known_ms)
return {'done', answer}
