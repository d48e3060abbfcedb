-- toolcell give_back 1. Makes a name usable again, if this is who used it.
-- KEYS: the name. ARGV: who used it.
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
return 1
