package dialect

import (
	"net/http"
	"strings"
)

// geo are the geocoders, maps and address services beside Google's. Many of them answer
// 200 and speak in the body.
var geo = []vendor{
	// Mapbox Swift SDK; X-Rate-Limit-Interval is the length of the window in seconds
	{name: "Mapbox", form: EpochSeconds, windows: xRateLimitAlt},
	{name: "HERE", peek: answers, body: readHERE},
	{name: "TomTom", peek: refusals, body: readTomTom},
	// its 402 is the daily quota, which ends at 00:00 UTC
	{name: "OpenCage", also: []string{"opencagedata"}, form: EpochSeconds, windows: xRateLimit, limits: []int{402}, peek: refusals | answers, body: readOpenCage},
	// https://docs.locationiq.com/docs/errors
	{name: "LocationIQ", peek: refusals, body: readLocationIQ},
	{name: "Nominatim", also: []string{"openstreetmap", "osm", "nominatimosm"}, limits: []int{509}, peek: refusals, body: readNominatim},
	{name: "ipinfo", also: []string{"ipinfoio"}},
	{name: "ipstack", peek: refusals | answers, body: readIpstack},
	// https://ip-api.com/docs/unban
	{name: "ip-api.com", also: []string{"ipapi"}, form: DeltaSeconds, windows: []family{{remaining: "X-Rl", reset: "X-Ttl"}}},
	// https://dev.maxmind.com/geoip/docs/web-services/responses; no credit is a 402
	{name: "MaxMind", peek: answers, body: readMaxMind},
	// https://ipgeolocation.io/documentation/credits-usage.html
	{name: "ipgeolocation.io", also: []string{"ipgeolocation"}, billed: only200, headers: creditsCharged},
	{name: "Radar"},
	{name: "Geocodio", peek: refusals, body: readGeocodio},
	{name: "GeoNames", peek: refusals | answers, body: readGeoNames},
	{name: "Baidu Maps", also: []string{"baidu"}, peek: answers, body: readBaidu},
	// https://lbs.amap.com/api/web-service/tools/info
	{name: "Amap", also: []string{"gaode"}, peek: answers, body: readAmap},
	{name: "Bing Maps", also: []string{"bing"}, headers: readBing},
	{name: "IPQualityScore", also: []string{"ipqs"}, peek: refusals | answers, body: readIPQualityScore},
	{name: "DB-IP", peek: refusals | answers, body: readDBIP},
	{name: "IGN"},
}

func readHERE(r Reading, a Answer) Reading {
	if find(a.Body, "statusCode") == "429" { // the old geocoder
		r.throttle("body")
	}
	return r
}

func readTomTom(r Reading, a Answer) Reading {
	switch {
	case mentions(a.Body, "developer over qps"):
		r.throttle("body")
		r.Policy = "qps"
	case mentions(a.Body, "developer over rate"):
		r.quota("daily", "body")
	}
	return r
}

func readOpenCage(r Reading, a Answer) Reading {
	c := &clock{h: a.Header, now: a.Now}
	var w Window
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "rate.limit":
			w.setLimit(v.text())
		case "rate.remaining":
			w.setRemaining(v.text())
		case "rate.reset":
			w.setReset(c, v.text(), EpochSeconds)
		}
	}
	if w.Known != 0 {
		r.Window = w
	}
	if a.Status == http.StatusPaymentRequired {
		r.Wall = r.Window.Known&HasReset == 0
		if !r.Wall {
			r.Policy = "daily"
		}
	}
	return r
}

func readLocationIQ(r Reading, a Answer) Reading {
	window, ok := strings.CutPrefix(lowerASCII(find(a.Body, "error")), "rate limited ")
	switch {
	case !ok:
	case window == "day":
		r.quota("day", "body")
	default:
		r.throttle("body")
		r.Policy = word(window)
	}
	return r
}

func readNominatim(r Reading, a Answer) Reading {
	if mentions(a.Body, "bandwidth limit exceeded", "overusing", "too many requests", "temporarily blocked") {
		r.throttle("body")
	}
	return r
}

func readIpstack(r Reading, a Answer) Reading {
	switch find(a.Body, "error.code") {
	case "104":
		r.quota("monthly", "body")
	}
	return r
}

// readMaxMind reads how many prepaid queries are left. They never come back by
// themselves.
func readMaxMind(r Reading, a Answer) Reading {
	w := Window{Name: "prepaid"}
	w.setRemaining(find(a.Body, "maxmind.queries_remaining"))
	r.add(&w)
	return r
}

// only200 is the rule of vendors that bill nothing but an answer of status 200.
func only200(status int) Billed {
	if status == http.StatusOK {
		return BilledYes
	}
	return BilledNo
}

func creditsCharged(r Reading, a Answer) Reading {
	if n, ok := parseNumber(trim(first(a.Header, "X-Credits-Charged"))); ok && n == (number{}) {
		r.Billed = BilledNo
	}
	return r
}

// readGeocodio tells the daily quota from a bad key; both are 403.
func readGeocodio(r Reading, a Answer) Reading {
	if strings.Contains(lowerASCII(find(a.Body, "error")), "above your daily maximum") {
		r.quota("daily", "body")
	}
	return r
}

func readGeoNames(r Reading, a Answer) Reading {
	value := find(a.Body, "status.value")
	if _, rest, ok := strings.Cut(string(a.Body[:min(len(a.Body), maxBody)]), "<status "); ok {
		tag, _, _ := strings.Cut(rest, ">")
		_, value, _ = strings.Cut(tag, `value="`)
		value, _, _ = strings.Cut(value, `"`)
	}
	switch value {
	case "18":
		r.quota("daily", "body")
	case "19":
		r.quota("hourly", "body")
	case "20":
		r.quota("weekly", "body")
	}
	return r
}

// readBaidu reads the status in the body: 4 and 300 to 499 are quotas. 301 and 302 are
// those that only end with the plan or the day.
func readBaidu(r Reading, a Answer) Reading {
	n, ok := parseNumber(find(a.Body, "status"))
	if ok && (n.whole == 4 || 300 <= n.whole && n.whole <= 499) {
		r.throttle("body")
		r.Wall = n.whole == 301 || n.whole == 302
	}
	return r
}

func readAmap(r Reading, a Answer) Reading {
	var info, code string
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "info":
			info = v.text()
		case "infocode":
			code = v.text()
		}
	}
	switch {
	case code == "10003" || strings.HasSuffix(info, "DAILY_QUERY_OVER_LIMIT"):
		r.quota("daily", "body")
	case code == "10004":
		r.throttle("body")
		r.Policy = "minute"
	case strings.HasSuffix(info, "QPS_HAS_EXCEEDED_THE_LIMIT"):
		r.throttle("body")
		r.Policy = "qps"
	}
	return r
}

func readBing(r Reading, a Answer) Reading {
	if trim(first(a.Header, "X-Ms-Bm-Ws-Info")) == "1" {
		r.throttle("headers")
	}
	return r
}

func readIPQualityScore(r Reading, a Answer) Reading {
	message := lowerASCII(find(a.Body, "message"))
	switch {
	case strings.Contains(message, "insufficient credits"):
		r.wall("balance", "body")
	case strings.Contains(message, "exceeded your request quota"):
		r.quota(period(message), "body")
	}
	return r
}

func readDBIP(r Reading, a Answer) Reading {
	if strings.Contains(lowerASCII(find(a.Body, "error")), "maximum number of queries") || find(a.Body, "errorCode") == "OVER_QUERY_LIMIT" {
		r.quota("daily", "body")
	}
	return r
}
