-- toolcell keyvalue_read 1. Reads entries of one bucket as they all are at one time.
-- KEYS: the bucket's entries. ARGV: bytes of keys and values in the answer, then keys.
-- Lengths come first: one large value, asked for many times, would fill the server's memory.
local bytes_max, bytes, first = tonumber(ARGV[1]), 0, 2
for place = first, #ARGV do
    bytes = bytes + redis.call('HSTRLEN', KEYS[1], ARGV[place])
    if bytes > bytes_max then
        return false
    end
end
local PIECE, found = 1000, {}
for from = first, #ARGV, PIECE do
    local to = math.min(from + PIECE - 1, #ARGV)
    for offset, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV, from, to))) do
        if value then
            bytes = bytes + #ARGV[from + offset - 1]
        end
        found[#found + 1] = value
    end
end
if bytes > bytes_max then
    return false
end
return found
