package server

import (
	"encoding/json"
	"net/http"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// maxTagsBody is the maximum size in bytes of a request that changes tags.
const maxTagsBody = 1 << 20

// tag adds or removes tags of a job that is only in the archive.
func (s *Server) tag(w http.ResponseWriter, r *http.Request) error {
	var in api.Tags
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTagsBody))
	body.DisallowUnknownFields()
	if err := body.Decode(&in); err != nil {
		return hint.Errorf(`send {"tags": ["a", "b"]}`, "%w: the body can't be read: %w", archive.ErrBadQuery, err)
	}
	add, remove := in.Tags, []string(nil)
	if r.Method == http.MethodDelete {
		add, remove = nil, in.Tags
	}
	tags, err := s.o.Store.Tag(r.Context(), r.PathValue("uid"), add, remove)
	if err != nil {
		return err
	}
	if tags == nil {
		tags = []string{}
	}
	write(w, http.StatusOK, api.Tags{Tags: tags})
	return nil
}
