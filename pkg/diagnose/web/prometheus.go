package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Results reads a response of Prometheus to a query, {"status":"success","data":{"resultType":"vector","result":[…]}}. It calls each for every single
// result, because a response may have several megabytes.
func Results(body io.Reader, each func(*json.Decoder) error) error {
	d := json.NewDecoder(body)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return errors.New("it has no result")
		}
		if err != nil {
			return err
		}
		if token == "result" {
			break
		}
	}
	if token, err := d.Token(); err != nil || token != json.Delim('[') {
		return fmt.Errorf("its result is not a list (%v)", cmp.Or(fmt.Sprint(token), fmt.Sprint(err)))
	}
	for d.More() {
		if err := each(d); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
