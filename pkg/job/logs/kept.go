package logs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/logstore/logapi"
)

// errNotKept is a log that the agent of its machine doesn't have: it is asked for elsewhere.
var errNotKept = errors.New("no agent keeps it")

// errLost is one that it had.
var errLost = errors.New("the rest of its log doesn't come: the agent of its machine, or the job controller, doesn't answer any more")

const (
	// pageWait is how long a question for lines waits that aren't there yet.
	pageWait = 10 * time.Second
	// pageTries is how often a page is asked for that breaks off. An agent, or the controller, that is renewed is away for some seconds.
	pageTries = 40
)

// pager reads the log of a container from the agent of its machine, page by page. Nothing is read twice,
// and nothing left out, where connections break off.
type pager struct {
	r     *reader
	s     *source
	first url.Values // of the first page, in place of its offset
	begun bool
	next  int64 // offset of the next page
	end   int64 // of the log, when it was asked last
	given int64 // lines of the next page that were handed over already
	told  bool  // what is missing
}

func (r *reader) pager(s *source, o *corev1.PodLogOptions) *pager {
	p := &pager{r: r, s: s, first: url.Values{}}
	switch {
	case o.TailLines != nil:
		p.first.Set("tail", strconv.FormatInt(*o.TailLines, 10))
	case o.SinceSeconds != nil:
		p.first.Set("since", fmt.Sprintf("%ds", *o.SinceSeconds))
	}
	return p
}

// page hands over the lines of the next page; wait is how long it may wait for some.
func (p *pager) page(ctx context.Context, wait time.Duration, give func(line) error) error {
	resp, err := p.ask(ctx, wait)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(resp.Header.Get(name), 10, 64) // what is missing is 0
		return n
	}
	p.missing(number(logapi.HeaderStart), number(logapi.HeaderGaps), number(logapi.HeaderLimit))
	skip := p.given
	err = lines(resp.Body, func(text string) error {
		if skip > 0 {
			skip--
			return nil
		}
		p.given++
		return give(stamped(text))
	})
	if err != nil {
		return err
	}
	p.begun, p.next, p.end, p.given = true, number(logapi.HeaderNext), number(logapi.HeaderEnd), 0
	return nil
}

func (p *pager) ask(ctx context.Context, wait time.Duration) (*http.Response, error) {
	if p.s.node == "" || p.s.uid == "" || !p.begun && p.r.withoutAgent(p.s.node) {
		return nil, errNotKept
	}
	q := url.Values{}
	if p.begun {
		q.Set("offset", strconv.FormatInt(p.next, 10))
	} else {
		for name, v := range p.first {
			q[name] = v
		}
	}
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	if p.r.match != nil {
		q.Set("match", p.r.match.String())
	}
	resp, err := p.r.client.History.Page(ctx, p.s.node, p.s.uid, p.s.container(), q)
	switch {
	case apierrors.IsNotFound(err):
		if !p.begun && strings.Contains(err.Error(), logapi.NoAgent) {
			p.r.noAgent(p.s.node)
		}
		return nil, errNotKept
	case errors.Is(err, job.ErrNoController):
		if !p.begun {
			p.r.noAgent(p.s.node)
		}
		return nil, errNotKept
	case err != nil && !p.begun && p.given == 0 && ctx.Err() == nil:
		p.r.problem(fmt.Errorf("%s: its log is read from Kubernetes, which may have less of it: %w", p.s.name, err))
		return nil, errNotKept
	}
	return resp, err
}

// missing says once what isn't there any more.
func (p *pager) missing(start, gaps, limit int64) {
	whole := len(p.first) == 0
	if p.told || !whole {
		return
	}
	if dropped := start - p.next; dropped > 0 {
		p.told = true
		p.r.problem(fmt.Errorf("%s: %s of its log were dropped before what follows: %s are kept of a task's log (perTask of log-manager)", p.s.name, size(dropped), size(limit)))
	}
	if gaps > 0 {
		p.told = true
		p.r.problem(fmt.Errorf("%s: some lines of its log may be missing: its machine can have removed them while log-manager didn't run", p.s.name))
	}
}

// size writes bytes as a person reads them.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<30), 'g', 3, 64) + " GiB"
	case n >= 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<20), 'g', 3, 64) + " MiB"
	}
	return strconv.FormatInt((n+1023)/1024, 10) + " KiB"
}

// retry repeats a page that breaks off.
func (p *pager) retry(ctx context.Context, wait time.Duration, give func(line) error) error {
	stopped := error(nil)
	mine := func(l line) error {
		stopped = give(l)
		return stopped
	}
	for failures := 0; ; failures++ {
		err := p.page(ctx, wait, mine)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || stopped != nil:
			return err
		case failures == pageTries && errors.Is(err, errNotKept):
			return errLost
		case failures == pageTries:
			return err
		case errors.Is(err, errNotKept) && !p.begun && p.given == 0:
			return err
		case !p.begun && p.given > 0 && len(p.first) > 0:
			return err // the last lines are others by now
		}
		pause(ctx, retryLog)
	}
}

// readKept hands over a log from the agent of its machine.
func (r *reader) readKept(ctx context.Context, s *source, o *corev1.PodLogOptions, give func(line) error) error {
	p := r.pager(s, o)
	for {
		if err := p.retry(ctx, 0, give); err != nil {
			return err
		}
		if p.next >= p.end {
			return nil
		}
	}
}
