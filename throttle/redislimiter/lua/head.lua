-- All numbers are whole and below 2^53: instants in microseconds, tokens in millionths,
-- factors in millionths.
local TIME = redis.call('TIME')
local NOW = TIME[1] * 1000000 + TIME[2]
local ONE = 1000000
local LATEST = 2000000 -- no turn lies further ahead, unless the clock was set back: then it begins now
local MAGIC = 'outlay-1' -- begins every description of legs
