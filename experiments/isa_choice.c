// --isa and QG_ISA. See isa_choice.h.
#include <isa_choice.h>

#include <message.h>
#include <qg_cpu.h>

#include <stdlib.h>

const char *qg_isa_cap(const char *option) {
    const char *cap = option ? option : getenv("QG_ISA");
    return cap && (option || *cap) ? cap : NULL;
}

int qg_isa_choose(const char *option) {
    qg_status status = qg_cpu_use_isa(option);
    if (status == QG_OK)
        return 0;
    qg_message_error("%s%s", option ? "--isa: " : "", qg_detail());
    return status == QG_ERROR_UNSUPPORTED ? 5 : qg_message_exit_code(status);
}
