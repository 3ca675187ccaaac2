-- End a test match: nothing more is dealt or recorded.
--
-- KEYS 1… tests and its tables  hashes  match -> …
--      the last  journal  stream  the match's, in its mirror by now
-- ARGV 1 match
-- Reply {'closed'}

for i = 1, #KEYS - 1 do redis.call('HDEL', KEYS[i], ARGV[1]) end
redis.call('DEL', KEYS[#KEYS])
return {'closed'}
