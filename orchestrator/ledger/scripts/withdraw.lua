-- Take back a season's offer to a hall.
--
-- KEYS 1 offers  hash  season -> game
--      2 orders  hash  season -> order
-- ARGV 1 season
-- Reply {'withdrawn'}

redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return {'withdrawn'}
