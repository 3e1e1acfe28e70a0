package code

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Store is the job controller's, which keeps code by its SHA-256.
type Store interface {
	// CodeURL returns the URL of an archive.
	CodeURL(sha256 string) *url.URL
	// Do sends a request. A response with another status than success is an error. NotFound is an error of the API.
	Do(ctx context.Context, method string, to *url.URL, body io.Reader) (*http.Response, error)
}

// Upload sends a user's archive to the cluster, unless the cluster has it already. sent reports which.
func Upload(ctx context.Context, s Store, user string, a *Archive) (sent bool, err error) {
	to := s.CodeURL(a.SHA256)
	resp, err := s.Do(ctx, http.MethodHead, to, nil)
	if err == nil {
		return false, resp.Body.Close()
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("ask whether the code is in the cluster: %w", err)
	}
	to.RawQuery = url.Values{"user": {user}}.Encode()
	if resp, err = s.Do(ctx, http.MethodPut, to, a.Content()); err != nil {
		return false, fmt.Errorf("send the code: %w", err)
	}
	return true, resp.Body.Close()
}
