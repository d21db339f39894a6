package transport_test

import "errors"

func asType[E error](err error) (E, bool) { return errors.AsType[E](err) }
