module github.com/outlay-go/outlay

go 1.26.0

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/jarcoal/httpmock v1.4.1 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)
