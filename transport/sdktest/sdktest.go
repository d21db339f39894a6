// Package sdktest has no code but tests: the real Go SDKs of vendors, as users import
// them, over outlay with the vendors' presets, against the fakes of package vendortest.
// It is a module of its own, so that nobody else builds these SDKs.
package sdktest
