package price

import (
	"net/http"
	"net/url"
	"strings"
)

// Cells counts the elements of a distance matrix: origins times destinations. The two
// names are query parameters whose places are separated by "|", or fields of a JSON
// body that are lists. An encoded polyline stands for many places and cannot be
// counted; a parameter that is there twice counts as the larger one.
func Cells(origins, destinations string) Units {
	return func(r *http.Request) (int64, error) {
		count, err := places(r)
		if err != nil {
			return 0, err
		}
		from, to := count(origins), count(destinations)
		if from <= 0 || to <= 0 {
			return 0, unpriced("the cells of the matrix cannot be counted")
		}
		return from * to, nil // both are smaller than a request
	}
}

// Every groups the counted things by n and counts what is left over as one more group:
// 10 cells at one unit per 4 are 3 units.
func (u Units) Every(n int64) Units {
	return func(r *http.Request) (int64, error) {
		c, err := u(r)
		if err != nil || n <= 1 {
			return c, err
		}
		groups := c / n
		if c%n > 0 {
			groups++
		}
		return groups, nil
	}
}

// places returns a function that counts the places in a parameter; zero or less if it
// cannot.
func places(r *http.Request) (func(name string) int64, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, unpriced("the query is malformed")
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if len(body) > 0 {
		v, err := decodeJSON(body)
		if err != nil {
			return nil, err
		}
		fields, _ = v.(map[string]any)
	}
	return func(name string) int64 {
		list, _ := fields[name].([]any)
		most := int64(len(list))
		for _, v := range q[name] {
			if strings.Contains(v, "enc:") {
				return 0
			}
			if v != "" {
				most = max(most, int64(1+strings.Count(v, "|")))
			}
		}
		return most
	}, nil
}
