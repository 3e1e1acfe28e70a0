package assembly_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func TestCodeIsOfWhoSentIt(t *testing.T) {
	h := newHouse(t)
	const text = "pretend that this is packed"
	sum := sha256.Sum256([]byte(text))
	name := hex.EncodeToString(sum[:])
	path := "/api/v3/code/" + name
	send := func(who, name string) *servertest.Answer {
		data, err := json.Marshal(api.Submission{Text: servertest.JobFile(name, "speech"), Code: &job.Code{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text))}})
		require.NoError(t, err)
		return h.as(who, "POST", "/api/v3/jobs", string(data))
	}
	assert.Equal(t, 404, send("ann", "with-code").Status, "it isn't there")
	assert.Equal(t, 201, h.as("ann", "PUT", path, text).Status)
	assert.Equal(t, 200, h.as("ann", "HEAD", path, "").Status)
	a := send("ann", "with-code")
	require.Equal(t, 200, a.Status, a.Body)

	// The job's annotations contain the checksum of the code. Users who have read the checksum still can't get the code.
	assert.Equal(t, 404, h.as("abe", "HEAD", path, "").Status)
	assert.Equal(t, 404, send("abe", "with-code").Status)
	assert.Equal(t, 400, h.as("abe", "PUT", path, "something of the same length").Status)
	assert.Equal(t, 404, send("abe", "with-code").Status)
	assert.Equal(t, 201, h.as("abe", "PUT", path, text).Status, "who has the code may send it, too")
	assert.Equal(t, 200, send("abe", "with-code").Status)
	for _, bad := range []string{"/api/v3/code/" + name[:63], "/api/v3/code/" + name[:63] + "G", "/api/v3/code/x"} {
		assert.Equal(t, 400, h.as("ann", "PUT", bad, text).Status, bad)
	}
}

func TestListsHaveWhatEndedLongAgo(t *testing.T) {
	h := newHouse(t)
	base := time.Now().Add(-24 * time.Hour)
	for i := range 5 {
		h.Ended("vera", "vision", fmt.Sprintf("past-%d", i), base.Add(time.Duration(i)*time.Minute))
		h.Ended("ann", "speech", fmt.Sprintf("past-%d", i), base.Add(time.Duration(i)*time.Minute))
	}
	require.Equal(t, 202, h.Submit(h.tokens["vera"], "present", "vision").Status)
	names := func(who, query string) (out []string) {
		rows := []struct{ Name, State string }{}
		a := h.as(who, "GET", "/api/v2/jobs"+query, "")
		require.Equal(t, 200, a.Status, a.Body)
		a.Into(&rows)
		for _, r := range rows {
			out = append(out, r.Name)
		}
		return out
	}
	assert.Equal(t, []string{"present", "past-4", "past-3", "past-2", "past-1", "past-0"}, names("vera", ""))
	assert.Equal(t, []string{"past-3", "past-2"}, names("vera", "?offset=2&limit=2"))
	assert.Equal(t, []string{"past-0", "past-1"}, names("vera", "?order=jobName,ASC&limit=2"))
	assert.Equal(t, []string{"present", "past-4"}, names("vera", "?order=completionTime,DESClimit=5000&limit=2"), "a broken order is ignored")
	assert.Len(t, names("vera", "?state=SUCCEEDED"), 5)
	assert.Equal(t, []string{"present"}, names("vera", "?state=WAITING,RUNNING"))
	assert.Empty(t, names("vera", "?state=NONSENSE"))
	assert.Empty(t, names("vera", "?username=ann"))
	assert.Empty(t, names("vera", "?limit=0"))
	a := h.as("vera", "GET", "/api/v2/jobs?withTotalCount=true&limit=1&offset=1", "")
	assert.EqualValues(t, 6, a.JSON()["totalCount"])
	assert.Equal(t, "6", a.Header.Get("X-Total-Count"))
	for _, bad := range []string{"?limit=abc", "?limit=50001", "?offset=-1"} {
		assert.Equal(t, 400, h.as("vera", "GET", "/api/v2/jobs"+bad, "").Status, bad)
	}
	assert.Equal(t, 200, h.as("vera", "GET", "/api/v2/jobs/vera~past-1", "").Status)
	assert.Equal(t, 404, h.as("vic", "GET", "/api/v2/jobs/vera~past-1", "").Status)
	assert.Equal(t, 200, h.as("abe", "GET", "/api/v3/jobs/ann/past-1", "").Status, "the history knows the virtual cluster, too")
	page := struct {
		Items []struct{ Name string }
		Next  string
	}{}
	h.as("vera", "GET", "/api/v3/jobs?limit=4", "").Into(&page)
	require.Len(t, page.Items, 4)
	require.NotEmpty(t, page.Next)
	h.as("vera", "GET", "/api/v3/jobs?limit=4&cursor="+page.Next, "").Into(&page)
	assert.Len(t, page.Items, 2)
}

func TestTagsStayWithAJob(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Submit(h.tokens["vera"], "tagged", "vision").Status)
	h.Ended("vera", "vision", "past", time.Now().Add(-time.Hour))
	put := func(method, name, body string) int {
		return h.as("vera", method, "/api/v2/jobs/vera~"+name+"/tag", body).Status
	}
	for _, name := range []string{"tagged", "past"} {
		assert.Equal(t, 200, put("PUT", name, `{"value":"baseline"}`), name)
		assert.Equal(t, 200, put("PUT", name, `{"value":"keep me"}`), name)
		assert.Equal(t, 200, put("PUT", name, `{"value":"baseline"}`), "again")
		assert.Equal(t, 400, put("PUT", name, `{"value":"a,b"}`), name)
		assert.Equal(t, 400, put("PUT", name, `{}`), name)
		assert.Equal(t, 200, put("DELETE", name, `{"value":"keep me"}`), name)
		assert.Equal(t, 404, put("DELETE", name, `{"value":"keep me"}`), name)
	}
	listed := func(query string) (out []string) {
		rows := []struct {
			Name string
			Tags []string
		}{}
		h.as("vera", "GET", "/api/v2/jobs"+query, "").Into(&rows)
		for _, r := range rows {
			assert.Equal(t, []string{"baseline"}, r.Tags)
			out = append(out, r.Name)
		}
		return out
	}
	h.Eventually("lists have them", func() bool { return len(listed("?tagsContain=baseline,other")) == 2 })
	assert.Empty(t, listed("?tagsNotContain=baseline"))
}
