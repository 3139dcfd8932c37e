// Texts that stand for the content of a buffer. See case_label.h.
#include <case_label.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void case_label_append(case_label *label, const char *format, ...) {
    va_list values;
    va_start(values, format);
    size_t room = label->length < QG_LABEL_SIZE ? QG_LABEL_SIZE - label->length : 0;
    int more = vsnprintf(room ? label->text + label->length : NULL, room, format, values);
    va_end(values);
    label->length += more < 0 ? QG_LABEL_SIZE : (size_t)more;
}

void case_label_source(case_label *label, const qg_case *c) {
    case_label_append(label, "%s\n%s\n%016" PRIx64 "\n%" PRIu64 " %u %" PRId64 "\n",
                      c->source->data, c->source->tensor, c->source->digest, c->seed,
                      (unsigned)c->input_type, c->k);
}

void case_label_recipe(case_label *label, const qg_case *c, int operand) {
    case_label_append(label, "%s\n%s\n%s\n%s\n", operand ? c->format_b : c->format,
                      operand ? c->layout_b : c->layout, operand ? c->scale_rule_b : c->scale_rule,
                      c->rounding);
}

void case_label_finish(const case_label *label, char out[QG_LABEL_SIZE]) {
    snprintf(out, QG_LABEL_SIZE, "%s", label->length < QG_LABEL_SIZE ? label->text : "");
}
