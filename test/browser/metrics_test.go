package browser

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

var framework = regexp.MustCompile(`pod=~"([0-9a-f]+)-\(?(\w+)`)

// prometheus responds in place of Prometheus. The responses contain curves of GPUs that are idle most of the time while the processors of their
// tasks are busy.
func prometheus(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/query_range" { // the status asks for the present use
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		return
	}
	query := r.FormValue("query")
	number := func(key string) float64 {
		v, _ := strconv.ParseFloat(r.FormValue(key), 64)
		return v
	}
	start, end, step := number("start"), number("end"), number("step")
	var all []string
	series := func(labels string, value func(part float64, i int) float64) {
		var values []string
		for i, at := 0, start; at <= end; i, at = i+1, at+step {
			values = append(values, fmt.Sprintf(`[%.0f,"%g"]`, at, value((at-start)/max(end-start, 1), i)))
		}
		all = append(all, fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(values, ",")))
	}
	pod := func(i int) string {
		if m := framework.FindStringSubmatch(query); m != nil {
			return fmt.Sprintf(`"pod":"%s-%s-%d",`, m[1], m[2], i)
		}
		return ""
	}
	constant := func(v float64) func(float64, int) float64 { return func(float64, int) float64 { return v } }
	teeth := func(shift int) func(float64, int) float64 {
		return func(_ float64, i int) float64 {
			if (i+shift)%10 < 8 {
				return 1
			}
			return 92 - float64(shift)
		}
	}
	for i := range 8 {
		gpu := fmt.Sprintf(`%s"node":"gpu-%d","gpu":"%d"`, pod(i), i%2+1, i)
		task := strings.TrimSuffix(pod(i), ",")
		switch {
		case strings.Contains(query, "pai_task_gpus"):
			if i == 0 {
				series("", func(part float64, _ int) float64 { return 55 + 25*math.Sin(9*part) })
			}
		case strings.Contains(query, "GPU_UTIL"):
			series(gpu, teeth(i))
		case strings.Contains(query, "FB_USED"):
			series(gpu, func(part float64, _ int) float64 { return 60 + 20*part + float64(i) })
		case strings.Contains(query, "POWER_USAGE"):
			series(gpu, func(_ float64, k int) float64 { return 90 + 4*teeth(i)(0, k) })
		case strings.Contains(query, "GPU_TEMP"):
			series(gpu, func(part float64, _ int) float64 { return 55 + 8*math.Sin(6*part+float64(i)) })
		case strings.Contains(query, "cpu_quota"):
			series(task, constant(8))
		case strings.Contains(query, "container_cpu"):
			series(task, func(part float64, _ int) float64 { return 7.8 + 0.1*math.Sin(20*part+float64(i)) })
		case strings.Contains(query, "memory_limit"):
			series(task, constant(64<<30))
		case strings.Contains(query, "working_set"):
			series(task, func(part float64, _ int) float64 { return (20 + 10*part + float64(i)) * (1 << 30) })
		case strings.Contains(query, "container_"):
			series(task, func(part float64, _ int) float64 { return 1e8 * (1.2 + math.Sin(12*part+float64(i))) })
		case strings.Contains(query, "node_cpu"):
			if i < 2 {
				series([]string{`"part":"all"`, `"part":"the busiest"`}[i], constant(float64(60+35*i)))
			}
		case strings.Contains(query, "node_memory") && i == 0:
			series("", constant(300<<30))
		case strings.Contains(query, "guaranteed"):
			if i < 3 {
				series([]string{`"part":"guaranteed"`, `"part":"used"`, `"part":"bad"`}[i], func(part float64, _ int) float64 { return []float64{64, 40 + 10*math.Round(2*math.Sin(9*part)), 1}[i] })
			}
		case strings.Contains(query, "waiting_gangs") && i == 0:
			series(`"part":"jobs"`, func(part float64, _ int) float64 { return math.Round(3 * part) })
		}
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(all, ","))
}

// measured returns an option that connects a server to a stand-in for Prometheus.
func measured(t *testing.T) func(*servertest.Options) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(prometheus))
	t.Cleanup(service.Close)
	return func(o *servertest.Options) {
		if o.Settings == nil {
			o.Settings = settings.Default()
		}
		o.Settings.Door = map[string]settings.Service{"prometheus": {URL: service.URL, Page: "monitoring"}}
	}
}

func TestUseOverTime(t *testing.T) {
	b := openTab(t)
	w := newWorld(t, measured(t))
	w.machines(3)
	w.submit("ann", "train", "speech", 8)
	w.run("ann", "train")
	b.signIn(w, "/jobs/ann/train?tab=metrics", "ann")

	b.has(".metric-findings", "while the processors were full")
	b.shows("document.querySelectorAll('.plot canvas').length === document.querySelectorAll('.plot').length && document.querySelectorAll('.plot').length === 9")
	b.shows("document.querySelectorAll('.plot')[0].querySelectorAll('.lines li').length === 8")
	b.has(".plot:nth-child(4)", "Lowest of 8") // processors: more tasks than lines
	// The style sheet of the charts is applied, so the browser hasn't blocked it.
	b.shows("getComputedStyle(document.querySelector('.u-wrap')).position === 'relative' && document.querySelector('.uplot').clientHeight === 150")
	b.run("document.querySelector('.metrics details summary').click()")
	b.has(".metrics details table", "Worker_1[0] GPU 0")
	b.shows("document.querySelector('.metrics details tbody tr').innerText.includes('%')")

	// The chart shows the value at the pointer.
	b.run("(over => { const at = over.getBoundingClientRect(); over.dispatchEvent(new MouseEvent('mouseenter', {clientX: at.x + 5, clientY: at.y + 5})); over.dispatchEvent(new MouseEvent('mousemove', {clientX: at.x + at.width / 2, clientY: at.y + 5, bubbles: true})) })(document.querySelector('.plot .u-over'))")
	b.shows("document.querySelector('.plot figcaption .faint')")

	b.press(".segments button", "1 hour")
	b.shows("location.search.includes('span=1h')")
	b.shows("document.querySelector('.segments [aria-pressed=true]').innerText === '1 hour'")
	b.fill(".metrics select", "Worker_1[3]")
	b.shows("location.search.includes('task=Worker_1')")
	b.run("Object.defineProperty(navigator, 'clipboard', {configurable: true, value: {writeText: async t => { window.copied = t }}})")
	b.run("document.querySelector('.metrics .menu button').click()")
	b.press(".metrics [role=menuitem]", "Copy as paictl")
	b.shows(`window.copied === "paictl job metrics train --task 'Worker_1[3]' --since 1h"`)
	b.run("document.querySelector('.metrics .menu button').click()")
	b.press(".metrics [role=menuitem]", "Copy as curl")
	b.shows(`/\/api\/v3\/jobs\/ann\/train\/metrics\?since=1h&task=Worker_1%5B3%5D/.test(window.copied)`)

	b.do(chromedp.Navigate(w.URL + "/machines?machine=gpu-1"))
	b.press(".drawer summary", "Use over time")
	b.shows("document.querySelectorAll('.drawer .plot canvas').length >= 5")
	b.do(chromedp.Navigate(w.URL + "/queue?vc=speech"))
	b.press(".queue summary", "Use over time")
	b.has(".queue .plot", "Guaranteed")
	b.shows("document.querySelectorAll('.queue .plot canvas').length === 3")
	b.narrow(w, "/jobs/ann/train?tab=metrics")
}

func TestWithoutPrometheusTheChartsSaySo(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.submit("ann", "train", "speech", 1)
	b.signIn(w, "/jobs/ann/train?tab=metrics", "ann")
	b.has(".metrics .problem", "the use over time isn't known")
	b.has(".metrics .problem", "paictl service")
}

// This test examines the pages with charts with axe-core; see TestPagesAndTheirScreenshots.
func TestChartsAndTheirScreenshots(t *testing.T) {
	b := openTab(t)
	w := newWorld(t, measured(t))
	w.fill()
	b.signIn(w, "/", "ann")
	const drawn = "document.querySelectorAll('.plot canvas').length >= 3"
	b.pictures(w, "metrics", "/jobs/ann/wav2vec-large-960h?tab=metrics", drawn, "document.querySelector('.metrics').scrollIntoView()")
	b.pictures(w, "metrics-machine", "/machines?machine=gpu-1", "document.querySelector('.drawer summary')", "document.querySelector('.drawer summary').click()", drawn)
	b.pictures(w, "metrics-queue", "/queue?vc=speech", "document.querySelector('.queue summary')", "document.querySelector('.queue summary').click()", drawn)
}
