package kube

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roundTrip is a server that consists of one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func request(t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://10.0.0.1/", nil)
	require.NoError(t, err)
	return req
}

func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		started := time.Now()
		resp, err := patience{silent, answerTimeout}.RoundTrip(request(t))
		if err == nil {
			_ = resp.Body.Close()
		}
		var netErr net.Error
		require.ErrorAs(t, err, &netErr)
		assert.True(t, netErr.Timeout())
		require.EqualError(t, err, "no answer within 30s")
		assert.Equal(t, answerTimeout, time.Since(started))
	})
}

func TestAnAnswerMayTakeLongerThanItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked *http.Request
		watch := roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("event"))}, nil
		})
		resp, err := patience{watch, answerTimeout}.RoundTrip(request(t))
		require.NoError(t, err)
		<-time.After(10 * answerTimeout)
		require.NoError(t, asked.Context().Err(), "the watch was cut")
		require.NoError(t, resp.Body.Close())
		require.Error(t, asked.Context().Err(), "the request is still held")
	})
}

func TestALargeBodyMayTakeLongerThanTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := roundTrip(func(r *http.Request) (*http.Response, error) {
			for p := make([]byte, 1); ; {
				<-time.After(answerTimeout - time.Second)
				if err := r.Context().Err(); err != nil {
					return nil, err
				}
				if n, _ := r.Body.Read(p); n == 0 {
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
				}
			}
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://10.0.0.1/", strings.NewReader("code"))
		require.NoError(t, err)
		resp, err := patience{slow, answerTimeout}.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}
