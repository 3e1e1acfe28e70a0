package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

// serveCode sends an archive of code, or only its headers for a HEAD request.
func (s *Server) serveCode(w http.ResponseWriter, r *http.Request) error {
	sum := r.PathValue("sha256")
	if err := archive.CheckCode(sum, 0); err != nil {
		return err
	}
	// A user may know the checksum of another user's code. So if the request names a user, that user must own the code.
	if v := r.URL.Query(); v.Has("user") {
		owns, err := s.o.Store.OwnsCode(r.Context(), v.Get("user"), sum)
		if err == nil && !owns {
			err = fmt.Errorf("code %s: %w", sum, archive.ErrNotFound)
		}
		if err != nil {
			return err
		}
	}
	return s.sendCode(w, r, sum, "user "+r.URL.Query().Get("user"))
}

// serveTaskCode sends the code of a job to one of its tasks.
func (s *Server) serveTaskCode(w http.ResponseWriter, r *http.Request) error {
	sum := r.PathValue("sha256")
	if err := archive.CheckCode(sum, 0); err != nil {
		return err
	}
	job, _, err := s.job(r, peers.OfCode(sum))
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return fmt.Errorf("read the address of a task: %w", err)
	}
	return s.sendCode(w, r, sum, "job "+job, "host "+host)
}

// sendCode sends code. The download counts towards the limits for keys. Clients may cache the code forever, because its name is its checksum.
func (s *Server) sendCode(w http.ResponseWriter, r *http.Request, sum string, keys ...string) error {
	if r.Method != http.MethodHead {
		release, err := place(r, s.downloads, keys...)
		if err != nil {
			return err
		}
		defer release()
	}
	data, size, err := s.o.Store.Code(r.Context(), sum)
	if err != nil {
		return err
	}
	defer data.Close()
	ranges := r.Header.Get("Range")
	if !strings.HasPrefix(ranges, "bytes=") {
		r.Header.Del("Range") // RFC 9110 has units that aren't known ignored
	}
	if strings.Contains(ranges, ",") {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		write(w, http.StatusRequestedRangeNotSatisfiable, api.Error{Code: "BadRequest", Message: "a request for code has one range at most"})
		return nil
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("ETag", `"`+sum+`"`)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	// A task whose connection was interrupted requests only the rest of the code.
	noting := &notingReader{ReadSeeker: data}
	http.ServeContent(pacedWriter{w, newPace(r)}, r, "", time.Time{}, noting)
	if noting.err != nil {
		// The length has been sent before, so the client notices that the code is incomplete. This also logs it.
		s.o.Log.WarnContext(r.Context(), "the upload of the code is incomplete", "sha256", sum, "error", noting.err.Error())
	}
	return nil
}

// place waits until the limits allow another transfer of code.
func place(r *http.Request, of *httpserver.Places, keys ...string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), placeTime)
	defer cancel()
	if release, err = of.Acquire(ctx, keys...); err != nil {
		return nil, fmt.Errorf("%w: as much code is being transferred as may be at a time; try again later", errUnavailable)
	}
	return release, nil
}

// notingReader records an error of the archive while the code is being sent.
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

// receiveCode stores an archive of code. If the name, the size or the limits don't allow the code, receiveCode rejects the code before reading
// it. The request names the user, because all clients have the same token.
func (s *Server) receiveCode(w http.ResponseWriter, r *http.Request) error {
	sum := r.PathValue("sha256")
	if err := archive.CheckCode(sum, r.ContentLength); err != nil {
		w.Header().Set("Connection", "close") // the body is not read
		return err
	}
	user := r.URL.Query().Get("user")
	release, err := place(r, s.uploads, user)
	if err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	defer release()
	body := pacedReader{http.MaxBytesReader(w, r.Body, archive.MaxCode), http.NewResponseController(w), newPace(r)}
	if err := s.o.Store.PutCode(r.Context(), user, sum, r.ContentLength, body); err != nil {
		return err
	}
	// If the code was already stored, the body may not have been read yet. It is read to its end, because the client must be able to send all of
	// it before it reads the response.
	if _, err := io.Copy(io.Discard, body); err != nil {
		return fmt.Errorf("receive the code: %w", err)
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}
