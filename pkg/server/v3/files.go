package v3

import (
	"errors"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

const (
	// fileBytes limits the size of a file that is uploaded to a task.
	fileBytes = 1 << 40
	// fileTime limits the time to upload a file to a task.
	fileTime = 12 * time.Hour
)

// fileRoutes returns the routes for files of running tasks.
func fileRoutes() []server.Route {
	const path = oneTask + "/files"
	codes := []string{"NoJobError", "NoFileError", "ConflictJobError"}
	return []server.Route{
		{Method: http.MethodGet, Path: path, Rule: "job.enter", Summary: "Lists a folder of a running task", Serve: listFiles, In: reflect.TypeFor[filesIn](), Out: reflect.TypeFor[api.Files](), Limit: server.Limit{Each: 2}, Errors: codes},
		{Method: http.MethodGet, Path: path + "/content", Rule: "job.enter", Summary: "Returns a file of a running task, or a folder as a gzipped tar", Serve: readFile, In: reflect.TypeFor[filesIn](), Media: "application/octet-stream", Limit: server.Limit{Stream: true}, Errors: codes},
		{Method: http.MethodPut, Path: path + "/content", Rule: "job.enter", Summary: "Writes a file into a running task", Serve: writeFile, In: reflect.TypeFor[filesIn](), Out: reflect.TypeFor[struct{}](), Status: http.StatusCreated, Limit: server.Limit{Body: fileBytes, Time: fileTime, Each: 2}, Errors: codes},
	}
}

type filesIn struct {
	User  string `path:"user"`
	Name  string `path:"name"`
	Role  string `path:"role"`
	Index string `path:"index"`
	// Path is a path in the task. A path that doesn't begin with / is relative to the working folder of the task's program.
	Path string `query:"path"`
}

func files(c *server.Call) (j *app.Job, in *filesIn, index int32, err error) {
	in = &filesIn{}
	if err := c.Decode(in); err != nil {
		return nil, nil, 0, err
	}
	if index, err = app.Index(in.Index); err != nil {
		return nil, nil, 0, err
	}
	j, err = c.Actions.Job(c.Context(), "job.enter", in.User, in.Name)
	return j, in, index, err
}

func listFiles(c *server.Call) error {
	j, in, index, err := files(c)
	if err != nil {
		return err
	}
	list, err := j.Files(c.Context(), in.Role, index, in.Path)
	if err != nil {
		return err
	}
	out := api.Files{Path: list.Path, Kind: string(list.Kind), Size: list.Size, Modified: list.Modified, Entries: []api.FileEntry{}, More: list.More}
	for _, e := range list.Entries {
		out.Entries = append(out.Entries, api.FileEntry{Name: e.Name, Kind: string(e.Kind), Size: e.Size, Modified: e.Modified, Link: e.Link})
	}
	return c.JSON(out)
}

// readFile responds with a file. If the rest of the file can't be read, it aborts the response, so that clients don't mistake a part for the whole
// file.
func readFile(c *server.Call) error {
	j, in, index, err := files(c)
	if err != nil {
		return err
	}
	f := c.Flow()
	begin := func(file app.File) {
		h := c.Writer.Header()
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Name}))
		h.Set("X-Content-Type-Options", "nosniff")
		if file.Size >= 0 {
			h.Set("Content-Length", strconv.FormatInt(file.Size, 10))
		}
	}
	err = j.ReadFile(c.Context(), in.Role, index, in.Path, begin, flowWriter{f, c.Request.Method == http.MethodHead})
	switch {
	case errors.Is(err, errHead): // the headers are the response
	case err != nil && !f.Begun():
		h := c.Writer.Header()
		h.Del("Content-Disposition")
		h.Del("Content-Length")
		return err
	case err != nil:
		f.Cut()
	}
	return f.Flush()
}

// flowWriter writes to a response whose length may be unknown.
type flowWriter struct {
	f    *server.Flow
	head bool
}

// errHead ends the reading of a file if the response consists only of headers.
var errHead = errors.New("the answer has no body")

// Write implements io.Writer.
func (w flowWriter) Write(p []byte) (int, error) {
	if w.head {
		return 0, errHead
	}
	if err := w.f.Write(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

func writeFile(c *server.Call) error {
	j, in, index, err := files(c)
	if err != nil {
		return err
	}
	stop := func() {
		if http.NewResponseController(c.Writer).SetReadDeadline(time.Now()) != nil { // in process
			_ = c.Request.Body.Close()
		}
	}
	if err := j.WriteFile(c.Context(), in.Role, index, in.Path, c.Request.ContentLength, c.Request.Body, stop); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}
