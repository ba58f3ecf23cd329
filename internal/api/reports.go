package api

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

// The final report of a holdout: planned at no cost, made once, read for ever, as JSON and as a page.

type reportRequest struct {
	ID             string `path:"id" doc:"id of the holdout: ho_…"`
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 visible ASCII characters; the same key with another body is 422"`
}

type reportPlanReply struct{ Body holdout.ReportPlan }

func (a *API) registerReports() {
	const base = "/v1/holdouts/{id}/report"
	batches := huma.Middlewares{a.inTime, a.withBody(a.limits.BatchBytes)}
	typed(a, huma.Operation{
		OperationID: "plan-report", Method: http.MethodPost, Path: base + "/plan", Tags: []string{"reports"}, Security: needsKey, Middlewares: batches,
		Summary:     "Plan the final report",
		Description: "How wide the interval of each answer would be if the holdout were closed with this report now. It touches no holdout row, costs nothing and closes nothing.",
		RequestBody: a.jsonBody(reportSchema(false)), SkipValidateBody: true,
	}, a.planReport)
	typed(a, huma.Operation{
		OperationID: "close-with-report", Method: http.MethodPost, Path: base, Tags: []string{"reports"}, Security: needsKey, Middlewares: huma.Middlewares{a.inTime, a.mustBeAdmin, a.withBody(a.limits.BatchBytes)},
		Summary: "Close the holdout with its final report",
		Description: "Answers all queries of the report exactly, with intervals that hold together with all earlier ones, and closes the holdout: nothing more is answered, and what is left of the budget is gone. " +
			"All queries are chosen before any answer is seen. `close` must be true. The same report again is the recorded one. Under guess_and_check; admin only.",
		RequestBody: a.jsonBody(reportSchema(true)), SkipValidateBody: true,
		Responses: a.jsonReply("The report", FinalReport{}, false),
	}, a.closeWithReport)
	typed(a, huma.Operation{
		OperationID: "get-report", Method: http.MethodGet, Path: base, Tags: []string{"reports"}, Security: needsKey, Middlewares: huma.Middlewares{a.inTime},
		Summary: "The final report", Description: "The report that closed the holdout; 404 while it answers questions.",
		Responses: a.jsonReply("The report", FinalReport{}, false),
	}, func(ctx context.Context, in *holdoutPath) (*writtenReply, error) {
		r, err := a.service.Report(ctx, caller(ctx), in.ID)
		if err != nil {
			return nil, err
		}
		return reportReply(r)
	})
	a.raw(huma.Operation{
		OperationID: "get-report-page", Method: http.MethodGet, Path: base + ".html", Tags: []string{"reports"}, Security: needsKey, Middlewares: huma.Middlewares{a.inTime},
		Summary: "The final report as a page", Description: "One HTML file with the figure in it, which loads nothing: to print, to send, to attach.",
		Parameters: []*huma.Param{{Name: "id", In: "path", Required: true, Description: "id of the holdout: ho_…", Schema: &huma.Schema{Type: "string"}}},
		Responses:  map[string]*huma.Response{"200": {Description: "The report", Content: map[string]*huma.MediaType{"text/html": {Schema: &huma.Schema{Type: "string"}}}}},
	}, a.reportPage)
}

// reportSchema is the body of a report, or of a plan of one.
func reportSchema(closes bool) *huma.Schema {
	least, most, longest := 1, holdout.MaxReport, holdout.MaxTitle
	s := &huma.Schema{
		Type: "object", Required: []string{"queries"}, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"queries": {Type: "array", MinItems: &least, MaxItems: &most, Items: querySchema, Description: "what is reported, in order. A report compares with nothing: guess, half_width and promise are refused"},
		},
	}
	if closes {
		s.Required = append(s.Required, "close")
		s.Properties["title"] = &huma.Schema{Type: "string", MaxLength: &longest, Description: "a title for the report"}
		s.Properties["close"] = &huma.Schema{Type: "boolean", Enum: []any{true}, Description: "must be true: the holdout answers nothing after the report"}
	}
	return s
}

func (a *API) planReport(ctx context.Context, in *holdoutPath) (*reportPlanReply, error) {
	members, err := readObject(bodyOf(ctx), "queries")
	if err != nil {
		return nil, err
	}
	queries, _, err := batchOf(members, holdout.MaxReport)
	if err != nil {
		return nil, err
	}
	plan, err := a.service.PlanReport(ctx, caller(ctx), in.ID, queries)
	return &reportPlanReply{plan}, err
}

func (a *API) closeWithReport(ctx context.Context, in *reportRequest) (*writtenReply, error) {
	if err := checkIdempotencyKey(in.IdempotencyKey); err != nil {
		return nil, err
	}
	members, err := readObject(bodyOf(ctx), "queries", "title", "close")
	if err != nil {
		return nil, err
	}
	queries, _, err := batchOf(members, holdout.MaxReport)
	if err != nil {
		return nil, err
	}
	title := ""
	if text, ok := members["title"]; ok && json.Unmarshal(text, &title) != nil {
		return nil, wrongMember("/title", "must be a text")
	}
	if string(members["close"]) != "true" {
		return nil, wrongMember("/close", "must be true: a report closes the holdout, which answers nothing after it; what is left of the budget is gone. The path /report/plan says how wide its intervals would be, at no cost")
	}
	r, err := a.service.CloseWithReport(ctx, caller(ctx), in.ID, queries, title, in.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	return reportReply(r)
}

// reportReply is a report as it is sent: recorded bytes as they are, and the text beside them.
func reportReply(r holdout.FinalReport) (*writtenReply, error) {
	body, err := marshal(struct {
		holdout.FinalReport
		Text string `json:"text"`
	}{r, reportText(r)})
	return written(body, false), err
}

//go:embed pages/report.html
var reportTemplate string

var reportPage = template.Must(template.New("report").Parse(reportTemplate))

// reportPolicy is that of a report's page: it has its style in it, for it is sent around as a file, and loads nothing.
const reportPolicy = figurePolicy

func (a *API) reportPage(c *gin.Context) error {
	ctx := c.Request.Context()
	r, err := a.service.Report(ctx, caller(ctx), c.Param("id"))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := reportPage.Execute(&b, reportView(r)); err != nil {
		return fmt.Errorf("api: report page: %w", err)
	}
	sendPage(c, reportPolicy, htmlType, b.Bytes())
	return nil
}
