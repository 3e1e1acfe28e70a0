package download

import (
	"errors"
	neturl "net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestErrorsShowNoLoginAndNoSignature(t *testing.T) {
	assert.EqualError(t, &StatusError{URL: "https://u:sekrit@h/x?token=sekrit", Code: 404}, "GET https://********@h/x?********: 404 Not Found")
	assert.EqualError(t, withoutLogin(&neturl.Error{Op: "Get", URL: "https://h/x?signature=sekrit", Err: errors.New("refused")}), `Get "https://h/x?********": refused`)
}
