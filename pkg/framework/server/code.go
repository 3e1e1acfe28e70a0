package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/framework/archive"
)

// serveCode sends an archive of code. It may be cached for good: its name says what is in it.
func (s *Server) serveCode(w http.ResponseWriter, r *http.Request) error {
	sum := r.PathValue("sha256")
	if err := archive.CheckCode(sum, 0); err != nil {
		return err
	}
	// A checksum is no secret: whoever asks for a user gets what that user has sent. Pods of jobs know theirs from what they were told.
	if v := r.URL.Query(); v.Has("user") {
		owns, err := s.o.Store.OwnsCode(r.Context(), v.Get("user"), sum)
		if err == nil && !owns {
			err = fmt.Errorf("code %s: %w", sum, archive.ErrNotFound)
		}
		if err != nil {
			return err
		}
	}
	data, _, err := s.o.Store.Code(r.Context(), sum)
	if err != nil {
		return err
	}
	defer data.Close()
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("ETag", `"`+sum+`"`)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	// A task whose connection was cut asks for the rest.
	noting := &notingReader{ReadSeeker: data}
	http.ServeContent(w, r, "", time.Time{}, noting)
	if noting.err != nil {
		// Its length is said already: the client sees that it is cut, and so does the log.
		s.o.Log.WarnContext(r.Context(), "the upload of the code is incomplete", "sha256", sum, "error", noting.err.Error())
	}
	return nil
}

// notingReader remembers why a reading failed.
type notingReader struct {
	io.ReadSeeker
	err error
}

// Read implements io.Reader.
func (n *notingReader) Read(p []byte) (int, error) {
	count, err := n.ReadSeeker.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return count, err
}

// receiveCode keeps an archive of code, or refuses it before it is sent. The user is what the sender says:
// the token that it has is the same for all.
func (s *Server) receiveCode(w http.ResponseWriter, r *http.Request) error {
	sum := r.PathValue("sha256")
	if err := archive.CheckCode(sum, r.ContentLength); err != nil {
		w.Header().Set("Connection", "close") // what comes is not read
		return err
	}
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		w.Header().Set("Connection", "close")
		return fmt.Errorf("%w: %d uploads are in progress; try again later", errUnavailable, cap(s.uploads))
	}
	body := http.MaxBytesReader(w, r.Body, archive.MaxCode)
	if err := s.o.Store.PutCode(r.Context(), r.URL.Query().Get("user"), sum, r.ContentLength, body); err != nil {
		return err
	}
	// Where it was there already, no one has read it: whoever sends it must come to the answer.
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("receive the code: %w", err)
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}
