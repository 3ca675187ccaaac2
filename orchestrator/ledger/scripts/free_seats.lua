-- Free an attempt's GPUs; forget its wish and its answer.
--
-- KEYS 1 wants   hash    attempt -> request, of the box
--      2 answer  string  the box's answer to the attempt
--      3 gpus    hash    UUID -> 'hall attempt token deadline'
-- ARGV 1 attempt
-- Reply {'freed'}

local held = redis.call('HGETALL', KEYS[3])
for i = 1, #held, 2 do
  if string.match(held[i + 1], '^%S+ (%S+) ') == ARGV[1] then
    redis.call('HDEL', KEYS[3], held[i])
  end
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return {'freed'}
