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
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// errNotKept means that the machine's agent doesn't have the log. Other sources may have it.
var errNotKept = errors.New("no agent keeps it")

// errLost means that the rest of a log can't be read, because the agent or the controller no longer responds.
var errLost = errors.New("the rest of its log doesn't arrive: the agent of its machine, or the job controller, no longer answers")

const (
	// pageWait is how long a request waits for new lines.
	pageWait = 10 * time.Second
	// awayFirst is how long the first page of a log is requested while its agent or the controller is being replaced. After that the log is read
	// from Kubernetes, which may have fewer lines.
	awayFirst = 30 * time.Second
	// awayRest is how long the next page of a log is requested after its first page was read. It is longer, because only the agent has the rest
	// of the log.
	awayRest = 5 * time.Minute
	// awayTold is how long the agent may be unavailable before this is reported.
	awayTold = 5 * time.Second
)

// pager reads the log of a container page by page from the agent of its machine. If connections break, it neither repeats nor omits lines.
type pager struct {
	r     *reader
	s     *source
	first url.Values // of the first page, in place of its offset
	begun bool
	next  int64 // offset of the next page
	end   int64 // of the log, at the last request
	given int64 // lines of the next page that were passed on already
	// told is the position up to which gaps were reported, and gaps is the number of gaps before that position.
	told, gaps int64
	asked      bool      // a page has arrived, or begun to
	failing    time.Time // the time since which the next page is awaited
	said       bool      // that was reported
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

// page passes on the lines of the next page. wait is how long the agent may wait for new lines.
func (p *pager) page(ctx context.Context, wait time.Duration, give func(logapi.Line) error) error {
	resp, err := p.ask(ctx, wait)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(resp.Header.Get(name), 10, 64) // missing parts are 0
		return n
	}
	p.missing(number(logapi.HeaderStart), number(logapi.HeaderGaps), number(logapi.HeaderLimit))
	p.arrives()
	skip := p.given
	err = logapi.Read(resp.Body, true, func(l logapi.Line) error {
		if skip > 0 {
			skip--
			return nil
		}
		p.given++
		p.arrives()
		return give(l)
	})
	if err != nil {
		return err
	}
	p.begun, p.next, p.end, p.given = true, number(logapi.HeaderNext), number(logapi.HeaderEnd), 0
	return nil
}

func (p *pager) ask(ctx context.Context, wait time.Duration) (*http.Response, error) {
	if p.s.node == "" || p.s.uid == "" || !p.started() && p.r.withoutAgent(p.s.node) {
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
	if p.r.stream != "" {
		q.Set("stream", p.r.stream)
	}
	answered := p.unanswered(wait)
	resp, err := p.r.client.History.Page(ctx, p.s.node, p.s.uid, p.s.container(), q)
	answered()
	switch {
	case errors.Is(err, job.ErrAway):
		return nil, err
	case apierrors.IsNotFound(err):
		if !p.started() && strings.Contains(err.Error(), logapi.NoAgent) {
			p.r.noAgent(p.s.node)
		}
		return nil, errNotKept
	case errors.Is(err, job.ErrNoController):
		if !p.started() {
			p.r.noAgent(p.s.node)
		}
		return nil, errNotKept
	}
	return resp, err
}

// unanswered reports after a while that a request gets no response, because a machine without network or power doesn't even reject the
// connection. The caller must call the returned function when the response arrives.
func (p *pager) unanswered(wait time.Duration) (answered func()) {
	if p.said {
		return func() {}
	}
	done := make(chan struct{})
	late := time.AfterFunc(wait+p.r.awayTold, func() {
		defer close(done)
		if p.r.silent(p.s.node) {
			p.r.problem(fmt.Errorf("%s: its log is not available now: no agent answers for its machine, %s", p.s.name, p.s.node))
		}
	})
	return func() {
		if late.Stop() {
			return
		}
		<-done
		p.said = true
		if p.failing.IsZero() {
			p.failing = time.Now()
		}
	}
}

// started reports whether lines were passed on, or an empty page was read. The log can't be continued from Kubernetes after that.
func (p *pager) started() bool { return p.begun || p.given > 0 }

// missing reports lines that were dropped before they could be read. It reports again when further lines are dropped. If only the last lines, or
// the lines since a time, were requested, dropped lines before them don't count.
func (p *pager) missing(start, gaps, limit int64) {
	from := max(p.next, p.told)
	whole := p.begun || len(p.first) == 0
	if dropped := start - from; dropped > 0 && whole {
		p.given = 0 // the lines of this page that were passed on are dropped, too
		p.r.problem(fmt.Errorf("%s: %s of its log were dropped before the next line: %s are kept of a task's log (perTask of log-manager)", p.s.name, size(dropped), size(limit)))
	}
	if gaps > p.gaps && (p.asked || whole) {
		p.r.problem(fmt.Errorf("%s: some lines of its log may be missing: its machine may have removed them while log-manager didn't run", p.s.name))
	}
	p.told, p.gaps, p.asked = max(p.told, start), max(p.gaps, gaps), true
}

// size formats a number of bytes with a unit, such as 5 MiB.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<30), 'g', 3, 64) + " GiB"
	case n >= 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<20), 'g', 3, 64) + " MiB"
	}
	return strconv.FormatInt((n+1023)/1024, 10) + " KiB"
}

// retry passes on the next page. It repeats the request if the page doesn't arrive or is interrupted.
func (p *pager) retry(ctx context.Context, wait time.Duration, give func(logapi.Line) error) error {
	stopped := error(nil)
	mine := func(l logapi.Line) error {
		stopped = give(l)
		return stopped
	}
	defer p.r.waits(p, false)
	for {
		err := p.page(ctx, wait, mine)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || stopped != nil {
			return err
		}
		if err := p.hopeless(err); err != nil {
			return err
		}
		p.r.waits(p, true)
		pause(ctx, retryLog)
	}
}

// hopeless decides what to do after a request failed. It returns nil to retry the request, or the error to give up.
func (p *pager) hopeless(err error) error {
	now := time.Now()
	if p.failing.IsZero() {
		p.failing = now
	}
	since := now.Sub(p.failing)
	switch {
	case p.given > 0 && !p.begun && len(p.first) > 0: // the last lines have changed by then
		return fmt.Errorf("%w: %w", errLost, err)
	case p.started() && since >= p.r.awayRest:
		return fmt.Errorf("%w: %w", errLost, err)
	case !p.started() && errors.Is(err, errNotKept):
		return err
	case !p.started() && p.r.away(p.s.node, now) >= p.r.awayFirst:
		p.r.problem(fmt.Errorf("%s: its log is read from Kubernetes, which may have less of it: %w", p.s.name, err))
		return errNotKept
	}
	if since >= p.r.awayTold && !p.said {
		p.said = true
		p.r.problem(fmt.Errorf("%s: its log is not available now; retrying: %w", p.s.name, err))
	}
	return nil
}

// arrives records that a page arrives, so that the agent is available again.
func (p *pager) arrives() {
	if !p.failing.IsZero() {
		p.failing, p.said = time.Time{}, false
		p.r.back(p.s.node)
	}
}

// readKept passes on a log from the agent of its machine, until its present end.
func (r *reader) readKept(ctx context.Context, s *source, o *corev1.PodLogOptions, give func(logapi.Line) error) error {
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
