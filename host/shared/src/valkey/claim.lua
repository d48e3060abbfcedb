-- toolcell claim 1. Uses a name, unless another has used it. One that asks again gets its answer again.
-- KEYS: the name. ARGV: who uses it, and for how many milliseconds.
local holder = redis.call('GET', KEYS[1])
if holder then
    return holder == ARGV[1] and 1 or 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
