package assembly_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

// A person's simultaneous requests share one limit.
func TestRequestsAtATimeTakeNoMoreThanOnePersonMayHave(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := settings.Default()
	s.Limits.LiveJobs, s.Limits.LiveTasks = 8, 20
	h := houseOn(t, c, servertest.Options{Settings: s})
	file := func(name string) string {
		return servertest.JobFile(name, "speech") + "extras: {gangAllocation: false}\n"
	}
	tasks := func() (sum int) {
		for i := range 7 {
			for _, r := range framework(t, c, "ann", fmt.Sprint("job-", i)).Spec.TaskRoles {
				sum += int(r.TaskNumber)
			}
		}
		return sum
	}
	together := func(n int, each func(i int)) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { each(i) })
		}
		all.Wait()
	}
	for i := range 7 {
		a := h.as("ann", "POST", "/api/v2/jobs", file(fmt.Sprint("job-", i)))
		require.Equal(t, 202, a.Status, a.Body)
	}
	var mu sync.Mutex
	said := map[int]int{}
	together(2, func(i int) {
		a := h.as("ann", "POST", "/api/v2/jobs", file(fmt.Sprint("job-", 7+i)))
		mu.Lock()
		said[a.Status]++
		mu.Unlock()
	})
	assert.Equal(t, map[int]int{202: 1, 403: 1}, said, "one job of two finds room")
	assert.Equal(t, 202, h.as("ann", "POST", "/api/v2/jobs", file("job-0")).Status, "what is there takes no more room")
	together(7, func(i int) {
		h.as("ann", "POST", fmt.Sprintf("/api/v3/jobs/ann/job-%d/scale", i), `{"tasks":7}`)
	})
	assert.Equal(t, 19, tasks(), "two jobs of seven find room for six more tasks, and the eighth job has one")
}
