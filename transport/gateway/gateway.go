// Package gateway is an egress gateway: an [http.Handler] over a [transport.Transport],
// for programs in any language. An SDK is pointed at it by its base URL, and is paced,
// paid for, repeated safely and visible like a Go program that uses the library.
package gateway
