package vendortest

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
)

// NewGeocoder starts a fake of Google's web services for maps: geocoding at
// /maps/api/geocode/json, and the distance matrix at /maps/api/distancematrix/json.
//
// It bills 0.005 USD if Options.Price is zero, for every geocoding answer OK or
// ZERO_RESULTS, and for every element of a matrix. An address with the word "nowhere"
// has no results. It throttles with status 200 and "OVER_QUERY_LIMIT" in the body; the
// plan of faults has real 429s as well.
func NewGeocoder(o Options) *Fake {
	return start(vendor{
		name: "google-maps", hosts: []string{"maps.googleapis.com"},
		unit: "USD", price: 5_000_000,
		answer: googleAnswer, throttle: googleThrottle,
		fail: func(status int) reply { return googleStatus(status, "UNKNOWN_ERROR", "") },
	}, o)
}

func googleAnswer(c call) reply {
	q := c.URL.Query()
	matrix := c.URL.Path == "/maps/api/distancematrix/json"
	switch {
	case !matrix && c.URL.Path != "/maps/api/geocode/json":
		return reply{status: http.StatusNotFound, refused: true}
	case q.Get("key") == "":
		return googleRefusal(http.StatusOK, "REQUEST_DENIED", "You must use an API key to authenticate each request.")
	case matrix:
		return googleMatrix(c, q.Get("origins"), q.Get("destinations"))
	}
	at := q.Get("address") + q.Get("latlng") + q.Get("place_id") + q.Get("components")
	if at == "" {
		return googleRefusal(http.StatusBadRequest, "INVALID_REQUEST", "Missing the 'address', 'components', 'latlng' or 'place_id' parameter.")
	}
	ref := fmt.Sprintf("geocode-%06d", c.serial()) // Google's answers name no charge
	if strings.Contains(strings.ToLower(at), "nowhere") {
		return googleStatus(http.StatusOK, "ZERO_RESULTS", "").bill(c, ref, "", 1)
	}
	return object(http.StatusOK, map[string]any{"status": "OK", "results": []any{googlePlace(c.id, at)}}).bill(c, ref, "", 1)
}

// googlePlace invents a place, the same one for the same question.
func googlePlace(id fingerprint, address string) map[string]any {
	point := func(off float64) map[string]float64 {
		return map[string]float64{
			"lat": float64(binary.BigEndian.Uint16(id[0:]))/65536*120 - 60 + off,
			"lng": float64(binary.BigEndian.Uint16(id[2:]))/65536*340 - 170 + off,
		}
	}
	return map[string]any{
		"formatted_address": address, "place_id": fmt.Sprintf("ChIJ%x", id[:12]), "types": []string{"street_address"},
		"address_components": []any{map[string]any{"long_name": address, "short_name": address, "types": []string{"route"}}},
		"geometry": map[string]any{
			"location": point(0), "location_type": "ROOFTOP",
			"viewport": map[string]any{"northeast": point(0.001), "southwest": point(-0.001)},
		},
	}
}

// googleMatrix bills origins times destinations.
func googleMatrix(c call, origins, destinations string) reply {
	if origins == "" || destinations == "" {
		return googleRefusal(http.StatusBadRequest, "INVALID_REQUEST", "")
	}
	from, to := strings.Split(origins, "|"), strings.Split(destinations, "|")
	if len(from) > 25 || len(to) > 25 {
		return googleRefusal(http.StatusOK, "MAX_DIMENSIONS_EXCEEDED", "")
	}
	var rows []any
	var n int64
	for range from {
		var cells []any
		for range to {
			n++
			cells = append(cells, map[string]any{
				"status":   "OK",
				"distance": map[string]any{"text": "1.0 km", "value": 1000},
				"duration": map[string]any{"text": "2 mins", "value": 120},
			})
		}
		rows = append(rows, map[string]any{"elements": cells})
	}
	return object(http.StatusOK, map[string]any{
		"status": "OK", "origin_addresses": from, "destination_addresses": to, "rows": rows,
	}).bill(c, fmt.Sprintf("matrix-%06d", c.serial()), "", n)
}

func googleThrottle(_ call, why refusal) reply {
	const message = "You have exceeded your rate-limit for this API."
	if why.planned {
		return googleStatus(http.StatusTooManyRequests, "OVER_QUERY_LIMIT", message).hint(why.after)
	}
	return googleStatus(http.StatusOK, "OVER_QUERY_LIMIT", message)
}

func googleStatus(code int, status, message string) reply {
	body := map[string]any{"status": status, "results": []any{}}
	if message != "" {
		body["error_message"] = message
	}
	return object(code, body)
}

func googleRefusal(code int, status, message string) reply {
	return googleStatus(code, status, message).refuse()
}
