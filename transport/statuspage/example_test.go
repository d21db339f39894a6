package statuspage_test

import (
	"errors"
	"log"
	"net/http"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// The page shows, the admin handler changes; who may do that is yours to say.
func Example() {
	page := statuspage.New(statuspage.Options{})
	rt, err := transport.New(transport.Config{OnEvent: page.Observe})
	if err != nil {
		log.Fatal(err)
	}
	page.Watch(rt)
	admin, err := statuspage.Admin(rt, statuspage.AdminOptions{
		Authorize: func(r *http.Request, a statuspage.Action) (actor string, err error) {
			user, password, ok := r.BasicAuth()
			if !ok || password != "correct horse battery staple" {
				return "", errors.New("who are you?")
			}
			return user, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /debug/outlay/", page)
	mux.Handle("/debug/outlay/admin/", http.StripPrefix("/debug/outlay/admin/", admin))
	_ = mux // on an address that only your people reach
}
